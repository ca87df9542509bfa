import { Cluster, Machine, MachineDeployment, MachineSet } from '@capstan/api'
import { controllerOf, Event, seconds, StatusError, type Transport, withSend } from '@capstan/kube'
import { afterEach, describe, expect, test } from 'vitest'
import {
  createClusterWithTemplates,
  aMachineDeployment,
  conditionText,
  DevMachine,
  DevMachineTemplate,
  setsEnv,
  type SetsEnv,
} from './sets-env.suite.ts'

let env: SetsEnv
afterEach(() => env.close())

const key = { namespace: 'default', name: 'workers' }
const patch = (body: object) => env.client.patch(MachineDeployment, key, { type: 'merge', body })
const setVersion = (version: string) => patch({ spec: { template: { spec: { version } } } })

/** Advances the clock until the counts of all sets are stable for 30 seconds. Returns a line with the counts at the start and after each change. */
async function countsUntilStable(): Promise<string> {
  const lines: string[] = []
  let stableSeconds = 0
  while (stableSeconds < 30) {
    await env.advance(seconds(1))
    const counts = await env.counts()
    stableSeconds = counts === lines.at(-1) ? stableSeconds + 1 : 0
    if (stableSeconds === 0) lines.push(counts)
  }
  return lines.join('\n')
}

async function aReadyDeployment(
  overrides: Parameters<typeof aMachineDeployment>[0] = {},
  options: Parameters<typeof setsEnv>[0] = {},
): Promise<void> {
  env = await setsEnv(options)
  await createClusterWithTemplates(env)
  await env.client.create(MachineDeployment, aMachineDeployment(overrides))
  await env.advance(seconds(60))
}

describe('a MachineDeployment', () => {
  test('adopts a MachineSet without a controller, keeps its owner reference to the Cluster, and labels it', async () => {
    await aReadyDeployment({ replicas: 0 })
    const { spec } = await env.client.get(MachineDeployment, key)
    const { clusterName, selector, template } = spec
    const { metadata: owner } = await env.client.get(Cluster, { namespace: 'default', name: clusterName })
    const ownerReferences = [{ apiVersion: 'cluster.x-k8s.io/v1beta2', kind: 'Cluster', name: clusterName, uid: owner.uid }]
    await env.client.create(MachineSet, {
      metadata: { namespace: 'default', name: 'lone', labels: { app: 'demo' }, ownerReferences },
      spec: { clusterName, selector, template, replicas: 0 },
    })
    await env.settle()
    const { metadata } = await env.client.get(MachineSet, { namespace: 'default', name: 'lone' })
    expect(metadata.labels).toMatchObject({ 'cluster.x-k8s.io/deployment-name': 'workers' })
    expect(metadata.ownerReferences?.map(({ kind }) => kind)).toEqual(['Cluster', 'MachineDeployment'])
  })

  test('adopts a MachineSet although the selector of another deployment is invalid', async () => {
    env = await setsEnv({ withoutValidation: true })
    await createClusterWithTemplates(env)
    const invalid = aMachineDeployment({ selector: { matchExpressions: [{ key: 'app', operator: 'In' as const, values: [] }] } })
    await env.client.create(MachineDeployment, { ...invalid, metadata: { ...invalid.metadata, name: 'invalid' } })
    const deployment = await env.client.create(MachineDeployment, aMachineDeployment({ replicas: 0 }))
    const { clusterName, selector, template } = deployment.spec
    const metadata = { namespace: 'default', name: 'lone', labels: { app: 'demo' } }
    await env.client.create(MachineSet, { metadata, spec: { clusterName, selector, template, replicas: 0 } })
    await env.settle()
    const set = await env.client.get(MachineSet, { namespace: 'default', name: 'lone' })
    expect(controllerOf(set)).toMatchObject({ kind: 'MachineDeployment', name: 'workers' })
  })

  test('creates a MachineSet, reports progress, and writes nothing once the Machines are available', async () => {
    env = await setsEnv()
    await createClusterWithTemplates(env)
    await env.client.create(MachineDeployment, aMachineDeployment())
    await env.settle()
    const [set] = (await env.client.list(MachineSet, { namespace: 'default' })).items
    const hash = set!.metadata.labels!['machine-template-hash']!
    expect(hash).toMatch(/^\d+-[b-z2-9]{5}$/)
    expect(set).toMatchObject({
      metadata: {
        name: `workers-${hash.slice(-5)}`,
        labels: { app: 'demo', 'cluster.x-k8s.io/deployment-name': 'workers', 'cluster.x-k8s.io/cluster-name': 'demo' },
        annotations: {
          'machinedeployment.clusters.x-k8s.io/revision': '1',
          'machinedeployment.clusters.x-k8s.io/desired-replicas': '3',
          'machinedeployment.clusters.x-k8s.io/max-replicas': '4',
          'cluster.x-k8s.io/disable-machine-create': 'false',
        },
        ownerReferences: [{ kind: 'MachineDeployment', name: 'workers', controller: true }],
      },
      spec: { replicas: 3, selector: { matchLabels: { app: 'demo', 'machine-template-hash': hash } } },
    })
    expect(conditionText(await env.client.get(MachineDeployment, key))).toMatchInlineSnapshot(`
      [
        "Available False NotAvailable: 0 available replicas, at least 3 required (spec.strategy.rollout.maxUnavailable is 0, spec.replicas is 3)",
        "RollingOut False NotRollingOut",
        "Remediating False NotRemediating",
        "ScalingDown False NotScalingDown",
        "ScalingUp False NotScalingUp",
        "MachinesReady Unknown ReadyUnknown: * Machines workers-qntq2-n48dw, workers-qntq2-rnfpq, workers-qntq2-x6l7q: Condition Ready not yet reported",
        "MachinesUpToDate True NoReplicas",
        "Paused False NotPaused",
        "Deleting False NotDeleting",
      ]
    `)

    await env.advance(seconds(60))
    const deployment = await env.client.get(MachineDeployment, key)
    expect(deployment).toMatchObject({
      metadata: {
        annotations: { 'machinedeployment.clusters.x-k8s.io/revision': '1' },
        ownerReferences: [{ kind: 'Cluster', name: 'demo' }],
      },
      status: {
        phase: 'Running',
        replicas: 3,
        readyReplicas: 3,
        availableReplicas: 3,
        upToDateReplicas: 3,
        versions: [{ version: 'v1.34.0', replicas: 3 }],
        observedGeneration: deployment.metadata.generation,
      },
    })
    expect(conditionText(deployment)).toMatchInlineSnapshot(`
      [
        "Available True Available",
        "RollingOut False NotRollingOut",
        "Remediating False NotRemediating",
        "ScalingDown False NotScalingDown",
        "ScalingUp False NotScalingUp",
        "MachinesReady True Ready",
        "MachinesUpToDate True UpToDate",
        "Paused False NotPaused",
        "Deleting False NotDeleting",
      ]
    `)
    const { revision } = env.store
    await env.advance(seconds(3600))
    expect(env.store.revision, 'writes while nothing changes').toBe(revision)
  })

  test('rolls a new version out one Machine at a time', async () => {
    await aReadyDeployment()
    await setVersion('v1.35.0')
    await env.advance(seconds(12))
    expect(conditionText(await env.client.get(MachineDeployment, key))).toContain(
      'RollingOut True RollingOut: Rolling out 3 not up-to-date replicas\n* Version v1.34.0, v1.35.0 required',
    )
    expect(await countsUntilStable()).toMatchInlineSnapshot(`
      "v1.34.0 3/2, 3 available; v1.35.0 1/1, 1 available
      v1.34.0 2/2, 2 available; v1.35.0 2/2, 1 available
      v1.34.0 2/1, 2 available; v1.35.0 2/2, 2 available
      v1.34.0 1/1, 1 available; v1.35.0 3/3, 2 available
      v1.34.0 1/0, 1 available; v1.35.0 3/3, 3 available
      v1.35.0 3/3, 3 available"
    `)
    expect((await env.client.list(DevMachine, { namespace: 'default' })).items).toHaveLength(3)
  })

  test('writes no old set while the current set cannot be written, and records an Event', async () => {
    let rejected = ''
    const rejecting = (transport: Transport): Transport =>
      withSend(transport, async (request, signal) => {
        const isApply = request.patchType === 'application/apply-patch+yaml' && request.plural === 'machinesets'
        if (isApply && request.name === rejected) throw new StatusError('Forbidden', 'quota')
        return transport.send(request, signal)
      })
    env = await setsEnv({ between: rejecting })
    await createClusterWithTemplates(env)
    await env.client.create(MachineDeployment, aMachineDeployment({ rollout: { strategy: { type: 'OnDelete' } } }))
    await env.advance(seconds(60))
    await setVersion('v1.35.0')
    await env.advance(seconds(10))
    const sets = async () => (await env.client.list(MachineSet, { namespace: 'default' })).items
    const current = (await sets()).find(({ spec }) => spec.template.spec.version === 'v1.35.0')!.metadata.name
    const timeouts = async () => (await sets()).map(({ spec }) => spec.template.spec.deletion?.nodeDrainTimeoutSeconds)

    rejected = current
    await patch({ spec: { template: { spec: { deletion: { nodeDrainTimeoutSeconds: 5 } } } } })
    await env.advance(seconds(5))
    expect(await timeouts()).toEqual([undefined, undefined])
    const { items } = await env.client.list(Event, { namespace: 'default' })
    expect(items.filter(({ reason }) => reason === 'FailedUpdate')[0]).toMatchObject({
      type: 'Warning',
      message: `Failed to update MachineSet default/${current}: failed to apply MachineSet: quota`,
    })

    rejected = ''
    await env.advance(seconds(60))
    expect(await timeouts()).toEqual([5, 5])
  })

  test('with the strategy OnDelete replaces only deleted Machines', async () => {
    await aReadyDeployment({ replicas: 2, rollout: { strategy: { type: 'OnDelete' } } })
    await setVersion('v1.35.0')
    expect(await countsUntilStable()).toMatchInlineSnapshot(`"v1.34.0 2/2, 2 available; v1.35.0 0/0, 0 available"`)
    const [machine] = (await env.client.list(Machine, { namespace: 'default' })).items
    await env.client.delete(Machine, { namespace: 'default', name: machine!.metadata.name })
    expect(await countsUntilStable()).toMatchInlineSnapshot(`
      "v1.34.0 2/2, 2 available; v1.35.0 0/0, 0 available
      v1.34.0 1/1, 1 available; v1.35.0 1/1, 0 available
      v1.34.0 1/1, 1 available; v1.35.0 1/1, 1 available"
    `)
  })

  test('is scaled by the scale subresource', async () => {
    await aReadyDeployment()
    await env.client.patch(MachineDeployment, key, { type: 'merge', body: { spec: { replicas: 1 } } }, { subresource: 'scale' })
    expect(await countsUntilStable()).toMatchInlineSnapshot(`
      "v1.34.0 3/1, 3 available
      v1.34.0 1/1, 1 available"
    `)
  })

  test('reuses an existing set of an earlier template, with a new revision', async () => {
    await aReadyDeployment()
    await setVersion('v1.35.0')
    await env.advance(seconds(12))
    await setVersion('v1.34.0')
    expect(await countsUntilStable()).toMatchInlineSnapshot(`
      "v1.34.0 3/2, 3 available; v1.35.0 1/1, 1 available
      v1.34.0 3/3, 2 available; v1.35.0 1/1, 1 available
      v1.34.0 3/3, 3 available; v1.35.0 1/0, 1 available
      v1.34.0 3/3, 3 available"
    `)
    const { items } = await env.client.list(MachineSet, { namespace: 'default' })
    expect(items.map(({ metadata }) => metadata.annotations)).toMatchObject([
      { 'machinedeployment.clusters.x-k8s.io/revision': '3', 'machinedeployment.clusters.x-k8s.io/revision-history': '1' },
    ])
  })

  test('propagates labels, minReadySeconds and the drain timeout in place to existing Machines', async () => {
    await aReadyDeployment()
    const before = (await env.client.list(Machine, { namespace: 'default' })).items.map(({ metadata }) => metadata.name)
    await patch({
      spec: {
        template: { metadata: { labels: { team: 'a' } }, spec: { minReadySeconds: 3, deletion: { nodeDrainTimeoutSeconds: 7 } } },
      },
    })
    await env.settle()
    const { items } = await env.client.list(Machine, { namespace: 'default' })
    expect(items.map(({ metadata }) => metadata.name)).toEqual(before)
    for (const { metadata, spec } of items) {
      expect(metadata.labels).toMatchObject({ team: 'a' })
      expect(spec).toMatchObject({ minReadySeconds: 3, deletion: { nodeDrainTimeoutSeconds: 7 } })
    }
  })

  test('creates a new set at rollout.after, even with the same template', async () => {
    await aReadyDeployment({ replicas: 1 })
    await patch({ spec: { rollout: { after: '2026-01-01T01:00:00Z' } } })
    await env.settle()
    expect(await env.counts()).toBe('v1.34.0 1/1, 1 available')
    await env.advance(seconds(3600 - 60 + 5))
    expect(await env.counts()).toBe('v1.34.0 1/1, 1 available; v1.34.0 1/1, 0 available')
    expect(await countsUntilStable()).toContain('v1.34.0 1/1, 1 available')
  })

  test('creates no set while a template is missing', async () => {
    env = await setsEnv()
    await createClusterWithTemplates(env)
    await env.client.delete(DevMachineTemplate, { namespace: 'default', name: 'infra' })
    await env.client.create(MachineDeployment, aMachineDeployment())
    await env.settle()
    const deployment = await env.client.get(MachineDeployment, key)
    expect(conditionText(deployment)).toContain(
      'ScalingUp True ScalingUp: Scaling up from 0 to 3 replicas is blocked because DevMachineTemplate does not exist',
    )
    expect((await env.client.list(MachineSet, { namespace: 'default' })).items).toEqual([])
    expect(deployment.status?.deprecated).toBeUndefined()
  })

  test('with a selector that is not a plain list of labels reports only the condition Paused, and creates no MachineSet', async () => {
    env = await setsEnv()
    await createClusterWithTemplates(env)
    const selector = { matchExpressions: [{ key: 'app', operator: 'Exists' as const }] }
    await env.client.create(MachineDeployment, aMachineDeployment({ selector }))
    await env.advance(seconds(60))
    // Upstream: metav1.LabelSelectorAsMap fails before the deferred update of the status.
    const { metadata, status } = await env.client.get(MachineDeployment, key)
    expect(status).toEqual({ conditions: [expect.objectContaining({ type: 'Paused', status: 'False', reason: 'NotPaused' })] })
    expect(metadata.ownerReferences).toBeUndefined()
    expect((await env.client.list(MachineSet, { namespace: 'default' })).items).toEqual([])
  })

  test('does not read or scale its sets when a template is of an unknown kind', async () => {
    await aReadyDeployment({ replicas: 1 })
    const infrastructureRef = { apiGroup: 'infra.test', kind: 'UnknownTemplate', name: 'infra' }
    await patch({ spec: { replicas: 2, template: { spec: { infrastructureRef } } } })
    await env.advance(seconds(60))
    expect(await env.counts()).toBe('v1.34.0 1/1, 1 available')
    // Upstream: reconcile in machinedeployment_controller.go returns the error of getTemplatesAndSetOwner.
    const deployment = await env.client.get(MachineDeployment, key)
    expect(deployment.status).toMatchObject({ phase: 'Unknown', observedGeneration: 1 })
    expect(conditionText(deployment)).toContain('Available Unknown InternalError: Please check controller logs for errors')
  })

  test('while paused scales existing sets, and does not continue the rollout', async () => {
    await aReadyDeployment()
    await setVersion('v1.35.0')
    await env.advance(seconds(12))
    expect(await env.counts()).toBe('v1.34.0 3/2, 3 available; v1.35.0 1/1, 1 available')
    await patch({ spec: { paused: true, replicas: 6 } })
    await env.advance(seconds(60))
    expect(await env.counts()).toBe('v1.34.0 6/6, 6 available; v1.35.0 1/1, 1 available')
  })

  test('while paused scales no further set after a set could not be scaled', async () => {
    let rejected = ''
    const rejecting = (transport: Transport): Transport =>
      withSend(transport, async (request, signal) => {
        const isMerge = request.patchType === 'application/merge-patch+json' && request.subresource === undefined
        if (isMerge && request.name === rejected) throw new StatusError('Forbidden', 'quota')
        return transport.send(request, signal)
      })
    await aReadyDeployment({}, { between: rejecting })
    rejected = (await env.client.list(MachineSet, { namespace: 'default' })).items[0]!.metadata.name
    await setVersion('v1.35.0')
    await env.advance(seconds(12))
    await patch({ spec: { paused: true, replicas: 0 } })
    await env.advance(seconds(60))
    expect(await env.counts()).toBe('v1.34.0 2/2, 2 available; v1.35.0 1/1, 1 available')
  })

  test('remains while its Machines are being deleted, and is removed with its sets', async () => {
    await aReadyDeployment()
    await env.client.delete(MachineDeployment, key)
    await env.settle()
    expect(conditionText(await env.client.get(MachineDeployment, key))).toContain('Deleting True Deleting: Deleting 3 Machines')
    await env.advance(seconds(60))
    for (const kind of [MachineDeployment, MachineSet, Machine]) {
      expect((await env.client.list<any>(kind, { namespace: 'default' })).items).toEqual([])
    }
  })
})
