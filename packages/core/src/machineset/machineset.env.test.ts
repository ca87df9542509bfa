import { Cluster, Machine, MachineDeployment, MachineSet } from '@capstan/api'
import type { Client, Kind, Logger, Transport } from '@capstan/kube'
import { controllerOf, messageOf, ownerReference, seconds, silent, StatusError, withSend } from '@capstan/kube'
import { afterEach, describe, expect, test } from 'vitest'
import {
  createClusterWithTemplates,
  aMachineDeployment,
  aMachineSet,
  conditionText,
  DevConfig,
  DevMachine,
  DevConfigTemplate,
  DevMachineTemplate,
  setsEnv,
  type SetsEnv,
} from '../machinedeployment/sets-env.suite.ts'

let env: SetsEnv
afterEach(() => env.close())

const key = { namespace: 'default', name: 'set' }

/** Starts an environment in which the Machines of a MachineSet run. */
async function startSet(...args: Parameters<typeof aMachineSet>): Promise<void> {
  env = await setsEnv()
  await createClusterWithTemplates(env)
  await env.client.create(MachineSet, aMachineSet(...args))
  await env.advance(seconds(30))
}
const names = async (client: Client, kind: Kind) =>
  (await client.list(kind, { namespace: 'default' })).items.map(({ metadata }) => metadata.name)

describe('a MachineSet', () => {
  test('creates Machines with their objects, and reports progress', async () => {
    env = await setsEnv()
    await createClusterWithTemplates(env)
    await env.client.create(MachineSet, aMachineSet())
    await env.settle()
    expect(conditionText(await env.client.get(MachineSet, key))).toMatchInlineSnapshot(`
      [
        "Remediating False NotRemediating",
        "ScalingDown False NotScalingDown",
        "ScalingUp False NotScalingUp",
        "MachinesReady Unknown ReadyUnknown: * Machines set-ndbnc, set-qntq2: Condition Ready not yet reported",
        "MachinesUpToDate True NoReplicas",
        "Paused False NotPaused",
        "Deleting False NotDeleting",
      ]
    `)

    await env.advance(seconds(30))
    const set = await env.client.get(MachineSet, key)
    expect(set).toMatchObject({
      metadata: { finalizers: ['cluster.x-k8s.io/machineset'], ownerReferences: [{ kind: 'Cluster', name: 'demo' }] },
      status: {
        replicas: 2,
        readyReplicas: 2,
        availableReplicas: 2,
        upToDateReplicas: 2,
        versions: [{ version: 'v1.34.0', replicas: 2 }],
        selector: 'app=demo,cluster.x-k8s.io/cluster-name=demo',
        observedGeneration: set.metadata.generation,
      },
    })
    expect(conditionText(set)).toMatchInlineSnapshot(`
      [
        "Remediating False NotRemediating",
        "ScalingDown False NotScalingDown",
        "ScalingUp False NotScalingUp",
        "MachinesReady True Ready",
        "MachinesUpToDate True UpToDate",
        "Paused False NotPaused",
        "Deleting False NotDeleting",
      ]
    `)

    const machines = (await env.client.list(Machine, { namespace: 'default' })).items
    const machine = machines[0]!
    const { name } = machine.metadata
    expect(machine).toMatchObject({
      metadata: {
        labels: { app: 'demo', 'cluster.x-k8s.io/cluster-name': 'demo', 'cluster.x-k8s.io/set-name': 'set' },
        finalizers: ['machine.cluster.x-k8s.io'],
        ownerReferences: [{ kind: 'MachineSet', name: 'set', controller: true }],
      },
      spec: {
        clusterName: 'demo',
        version: 'v1.34.0',
        infrastructureRef: { kind: 'DevMachine', name },
        bootstrap: { configRef: { kind: 'DevConfig', name } },
      },
    })
    expect(await env.client.get(DevMachine, { namespace: 'default', name })).toMatchObject({
      metadata: {
        labels: { app: 'demo', 'from-template': 'yes', 'cluster.x-k8s.io/set-name': 'set' },
        annotations: {
          'cluster.x-k8s.io/cloned-from-name': 'infra',
          'cluster.x-k8s.io/cloned-from-groupkind': 'DevMachineTemplate.infra.test',
        },
      },
      spec: { size: 'small' },
    })
  })

  test('writes nothing when idle', async () => {
    env = await setsEnv()
    await createClusterWithTemplates(env)
    await env.client.create(MachineSet, aMachineSet())
    await env.advance(seconds(60))
    const { revision } = env.store
    await env.advance(seconds(3600))
    expect(env.store.revision).toBe(revision)
  })

  test('waits for a missing template, and continues when it exists', async () => {
    env = await setsEnv()
    await createClusterWithTemplates(env)
    const template = { namespace: 'default', name: 'infra' }
    const { spec } = await env.client.get(DevMachineTemplate, template)
    await env.client.delete(DevMachineTemplate, template)
    await env.client.create(MachineSet, aMachineSet())
    await env.settle()
    expect(conditionText(await env.client.get(MachineSet, key))).toContain(
      'ScalingUp True ScalingUp: Scaling up from 0 to 2 replicas is blocked because:\n* DevMachineTemplate does not exist',
    )
    await env.client.create(DevMachineTemplate, { metadata: template, spec })
    await env.settle()
    expect(await names(env.client, Machine)).toHaveLength(2)
  })

  test('fails to copy an object that has no spec.template, and does not make the Cluster an owner of the object', async () => {
    env = await setsEnv()
    await createClusterWithTemplates(env)
    await env.client.create(DevMachine, { metadata: { namespace: 'default', name: 'infra' }, spec: { size: 'big' } })
    const { metadata, spec } = aMachineSet()
    const template = { ...spec.template.spec, infrastructureRef: { ...spec.template.spec.infrastructureRef, kind: 'DevMachine' } }
    await env.client.create(MachineSet, { metadata, spec: { ...spec, template: { ...spec.template, spec: template } } })
    await env.settle()
    const { status } = await env.client.get(MachineSet, key)
    const created = status?.deprecated?.v1beta1?.conditions?.find(({ type }) => type === 'MachinesCreated')
    // The copy consists of `spec.template`, which this object does not have.
    expect(created?.message).toMatch(/^failed to create InfraMachine: failed to apply DevMachine: .* spec: Required value$/)
    const { metadata: original } = await env.client.get(DevMachine, { namespace: 'default', name: 'infra' })
    expect(original.ownerReferences).toBeUndefined()
  })

  test.each([
    [
      'bootstrap template',
      'bootstrap',
      DevConfigTemplate,
      {},
      'PreflightCheckFailed: failed to read machineset.cluster.x-k8s.io/skip-preflight-checks annotation: failed to retrieve DevConfigTemplate default/bootstrap: DevConfigTemplate.bootstrap.test "bootstrap" not found',
    ],
    [
      'infrastructure template',
      'infra',
      DevMachineTemplate,
      {},
      'InfrastructureTemplateCloningFailed: failed to create InfraMachine: failed to compute desired InfraMachine: failed to retrieve DevMachineTemplate default/infra: DevMachineTemplate.infra.test "infra" not found',
    ],
    [
      'bootstrap template, without preflight checks',
      'bootstrap',
      DevConfigTemplate,
      { 'machineset.cluster.x-k8s.io/skip-preflight-checks': 'All' },
      'BootstrapTemplateCloningFailed: failed to create BootstrapConfig: failed to compute desired BootstrapConfig: failed to retrieve DevConfigTemplate default/bootstrap: DevConfigTemplate.bootstrap.test "bootstrap" not found',
    ],
  ])(
    'reports a missing template in the v1beta1 condition MachinesCreated, and does not report observedGeneration: %s',
    async (_, name, kind, annotations, expected) => {
      env = await setsEnv()
      await createClusterWithTemplates(env)
      await env.client.delete(kind, { namespace: 'default', name })
      const { metadata, spec } = aMachineSet()
      await env.client.create(MachineSet, { metadata: { ...metadata, annotations }, spec } as never)
      await env.settle()
      const { status } = await env.client.get(MachineSet, key)
      const created = status?.deprecated?.v1beta1?.conditions?.find(({ type }) => type === 'MachinesCreated')
      expect(`${created?.reason}: ${created?.message}`).toBe(expected)
      expect(status?.observedGeneration).toBeUndefined()
    },
  )

  test('first deletes the Machines that users marked for deletion, with their infrastructure', async () => {
    await startSet({ replicas: 3 })
    const [first, second, third] = await names(env.client, Machine)
    for (const name of [second!, third!]) {
      const body = { metadata: { annotations: { 'cluster.x-k8s.io/delete-machine': '' } } }
      await env.client.patch(Machine, { namespace: 'default', name }, { type: 'merge', body })
    }
    await env.client.patch(MachineSet, key, { type: 'merge', body: { spec: { replicas: 1 } } }, { subresource: 'scale' })
    await env.settle()
    expect(conditionText(await env.client.get(MachineSet, key))).toContain(
      'ScalingDown True ScalingDown: Scaling down from 3 to 1 replicas',
    )
    await env.advance(seconds(30))
    expect(await names(env.client, Machine)).toEqual([first])
    expect(await names(env.client, DevMachine)).toEqual([first])
  })

  test('propagates changes to Machines in place, and removes only its own labels', async () => {
    env = await setsEnv()
    await createClusterWithTemplates(env)
    const { template } = aMachineSet().spec
    const labelled = { ...template, metadata: { labels: { app: 'demo', tier: 'gold' } } }
    await env.client.create(MachineSet, aMachineSet({ replicas: 1, template: labelled }))
    await env.advance(seconds(30))
    const [name] = await names(env.client, Machine)
    const machineKey = { namespace: 'default', name: name! }
    await env.client.patch(Machine, machineKey, { type: 'merge', body: { metadata: { labels: { mine: 'yes' } } } })

    const body = {
      spec: {
        template: { metadata: { labels: { tier: null, zone: 'a' }, annotations: { note: 'x' } }, spec: { minReadySeconds: 5 } },
      },
    }
    await env.client.patch(MachineSet, key, { type: 'merge', body })
    await env.settle()

    const machine = await env.client.get(Machine, machineKey)
    const labels = { app: 'demo', zone: 'a', 'cluster.x-k8s.io/cluster-name': 'demo', 'cluster.x-k8s.io/set-name': 'set' }
    expect(machine.metadata.labels).toEqual({ ...labels, mine: 'yes' })
    expect(machine.metadata.annotations).toEqual({ note: 'x' })
    expect(machine.spec.minReadySeconds).toBe(5)
    expect((await env.client.get(DevMachine, machineKey)).metadata.labels).toEqual({ ...labels, 'from-template': 'yes' })
    expect(await names(env.client, Machine)).toEqual([name])
  })

  test('has no Machine and does not observe its generation while the MachineDeployment that its label names does not exist', async () => {
    env = await setsEnv()
    await createClusterWithTemplates(env)
    const { metadata, spec } = aMachineSet()
    const labels = { 'cluster.x-k8s.io/deployment-name': 'missing' }
    await env.client.create(MachineSet, { metadata: { ...metadata, labels }, spec })
    await env.settle()
    const set = await env.client.get(MachineSet, key)
    // Upstream: the conditions in machineset_controller_status.go when the Machines have not been listed.
    const internalError = (type: string) => `${type} Unknown InternalError: Please check controller logs for errors`
    expect(conditionText(set)).toEqual([
      ...['Remediating', 'ScalingDown', 'ScalingUp', 'MachinesReady', 'MachinesUpToDate'].map(internalError),
      'Paused False NotPaused',
      internalError('Deleting'),
    ])
    expect([set.status?.replicas, set.status?.observedGeneration, set.metadata.ownerReferences]).toEqual([
      undefined,
      undefined,
      undefined,
    ])
    expect(await names(env.client, Machine)).toEqual([])

    const body = { metadata: { labels: { 'cluster.x-k8s.io/deployment-name': null } } }
    await env.client.patch(MachineSet, key, { type: 'merge', body })
    await env.advance(seconds(30))
    expect(await names(env.client, Machine)).toHaveLength(2)
  })

  test('is deleted with its Machines while the MachineDeployment that its label names does not exist', async () => {
    await startSet()
    const body = { metadata: { labels: { 'cluster.x-k8s.io/deployment-name': 'missing' } } }
    await env.client.patch(MachineSet, key, { type: 'merge', body })
    await env.settle()
    await env.client.delete(MachineSet, key)
    await env.advance(seconds(60))
    // Upstream never completes this deletion: docs/reference/differences.md.
    expect(await names(env.client, MachineSet)).toEqual([])
    expect(await names(env.client, Machine)).toEqual([])
  })

  test('updates a Machine but not its bootstrap config, and keeps observedGeneration, while the infrastructure of the Machine does not exist', async () => {
    await startSet({ replicas: 1 })
    const [name] = await names(env.client, Machine)
    const machineKey = { namespace: 'default', name: name! }
    const { spec } = await env.client.get(DevMachine, machineKey)
    await env.client.delete(DevMachine, machineKey)
    const { status } = await env.client.get(MachineSet, key)
    const body = { spec: { template: { metadata: { labels: { tier: 'gold' } } } } }
    const { metadata } = await env.client.patch(MachineSet, key, { type: 'merge', body })
    await env.settle()
    const tiers = () =>
      Promise.all(
        [Machine, DevConfig].map(async (kind) => (await env.client.get<any>(kind, machineKey)).metadata.labels?.['tier']),
      )
    const observedGeneration = async () => (await env.client.get(MachineSet, key)).status?.observedGeneration
    // Upstream: syncMachines in machineset_controller.go
    expect(await tiers()).toEqual(['gold', undefined])
    expect(await observedGeneration()).toBe(status?.observedGeneration)

    await env.client.create(DevMachine, { metadata: machineKey, spec })
    await env.advance(seconds(60))
    expect(await tiers()).toEqual(['gold', 'gold'])
    expect(await observedGeneration()).toBe(metadata.generation)
  })

  test('is scaled up, and reports its replicas, while the infrastructure of one of its Machines does not exist', async () => {
    await startSet({ replicas: 1 })
    const [name] = await names(env.client, Machine)
    await env.client.delete(DevMachine, { namespace: 'default', name: name! })
    await env.client.patch(MachineSet, key, { type: 'merge', body: { spec: { replicas: 2 } } })
    await env.advance(seconds(30))
    expect(await names(env.client, Machine)).toHaveLength(2)
    expect((await env.client.get(MachineSet, key)).status?.replicas).toBe(2)
  })

  test('makes the Cluster an owner of its templates', async () => {
    env = await setsEnv()
    await createClusterWithTemplates(env)
    await env.client.create(MachineSet, aMachineSet())
    await env.settle()
    const { metadata } = await env.client.get(Cluster, { namespace: 'default', name: 'demo' })
    const owner = { apiVersion: 'cluster.x-k8s.io/v1beta2', kind: 'Cluster', name: 'demo', uid: metadata.uid }
    const infra = await env.client.get(DevMachineTemplate, { namespace: 'default', name: 'infra' })
    const bootstrap = await env.client.get(DevConfigTemplate, { namespace: 'default', name: 'bootstrap' })
    expect([infra, bootstrap].map((template) => template.metadata.ownerReferences)).toEqual([[owner], [owner]])
  })

  test('makes a Cluster that is being deleted an owner of its templates, so that they are deleted too', async () => {
    env = await setsEnv()
    await createClusterWithTemplates(env)
    const cluster = { namespace: 'default', name: 'demo' }
    await env.client.patch(Cluster, cluster, { type: 'merge', body: { metadata: { finalizers: ['test/hold'] } } })
    await env.client.delete(Cluster, cluster)
    const metadata = { ...aMachineSet().metadata, finalizers: ['test/hold'] }
    await env.client.create(MachineSet, { ...aMachineSet(), metadata })
    await env.settle()
    const infra = await env.client.get(DevMachineTemplate, { namespace: 'default', name: 'infra' })
    expect(infra.metadata.ownerReferences).toMatchObject([{ kind: 'Cluster', name: 'demo' }])
  })

  test('propagates timeouts to Machines that are being deleted', async () => {
    await startSet()
    const [name] = await names(env.client, Machine)
    await env.client.delete(Machine, { namespace: 'default', name: name! })
    const body = { spec: { template: { spec: { deletion: { nodeDrainTimeoutSeconds: 7 } } } } }
    await env.client.patch(MachineSet, key, { type: 'merge', body })
    await env.settle()
    const machine = await env.client.get(Machine, { namespace: 'default', name: name! })
    expect(machine.metadata.deletionTimestamp).toBeDefined()
    expect(machine.spec.deletion?.nodeDrainTimeoutSeconds).toBe(7)
  })

  test.each([
    ['devconfigs', 'BootstrapTemplateCloningFailed: failed to create BootstrapConfig: failed to apply DevConfig: quota'],
    ['devmachines', 'InfrastructureTemplateCloningFailed: failed to create InfraMachine: failed to apply DevMachine: quota'],
    ['machines', 'MachineCreationFailed: failed to apply Machine: quota'],
  ])('leaves no provider objects when %s are rejected, reports the error, and retries', async (plural, expected) => {
    let rejects = true
    const rejecting = (transport: Transport): Transport =>
      withSend(transport, async (request, signal) => {
        if (rejects && request.patchType === 'application/apply-patch+yaml' && request.plural === plural)
          throw new StatusError('Forbidden', 'quota')
        return transport.send(request, signal)
      })
    env = await setsEnv({ between: rejecting })
    await createClusterWithTemplates(env)
    await env.client.create(MachineSet, aMachineSet())
    await env.settle()
    expect(await names(env.client, DevConfig)).toEqual([])
    expect(await names(env.client, DevMachine)).toEqual([])
    const { status } = await env.client.get(MachineSet, key)
    const created = status?.deprecated?.v1beta1?.conditions?.find(({ type }) => type === 'MachinesCreated')
    expect(`${created?.reason}: ${created?.message}`).toBe(expected)
    rejects = false
    await env.advance(seconds(60))
    expect(await names(env.client, Machine)).toHaveLength(2)
    expect(await names(env.client, DevConfig)).toEqual(await names(env.client, Machine))
  })

  test('creates no Machine twice while the cache lacks the created ones', async () => {
    const withoutMachineEvents = (transport: Transport): Transport => ({
      send: (request, signal) => transport.send(request, signal),
      close: () => transport.close(),
      async watch(request, signal) {
        const events = await transport.watch(request, signal)
        return request.plural === 'machines' ? never(signal) : events
      },
    })
    env = await setsEnv({ between: withoutMachineEvents, patience: 30 })
    await createClusterWithTemplates(env)
    await env.client.create(MachineSet, aMachineSet())
    await env.advance(seconds(12))
    await env.client.patch(MachineSet, key, { type: 'merge', body: { metadata: { labels: { touched: 'yes' } } } })
    await env.advance(seconds(3))
    expect(await names(env.client, Machine)).toHaveLength(2)
    expect(await names(env.client, DevMachine)).toHaveLength(2)
  })

  test('adopts a Machine that is being deleted, instead of creating another', async () => {
    env = await setsEnv()
    await createClusterWithTemplates(env)
    const { template } = aMachineSet().spec
    const labels = { app: 'demo', 'cluster.x-k8s.io/cluster-name': 'demo' }
    await env.client.create(Machine, {
      metadata: { name: 'lone', namespace: 'default', labels, finalizers: ['test/hold'] },
      spec: { ...template.spec, bootstrap: { dataSecretName: 's' } },
    })
    await env.client.delete(Machine, { namespace: 'default', name: 'lone' })
    await env.client.create(MachineSet, { ...aMachineSet(), spec: { ...aMachineSet().spec, replicas: 1 } })
    await env.settle()
    const { items } = await env.client.list(Machine, { namespace: 'default' })
    expect(items.map((machine) => [machine.metadata.name, controllerOf(machine)?.kind])).toEqual([['lone', 'MachineSet']])
  })

  test('adopts a Machine that has no controller, and keeps the name of its bootstrap data Secret', async () => {
    env = await setsEnv()
    await createClusterWithTemplates(env)
    const { template } = aMachineSet().spec
    await env.client.create(Machine, {
      metadata: { name: 'lone', namespace: 'default', labels: { app: 'demo', 'cluster.x-k8s.io/cluster-name': 'demo' } },
      spec: { ...template.spec, bootstrap: { dataSecretName: 's' } },
    })
    await env.client.create(MachineSet, aMachineSet())
    await env.settle()
    const machine = await env.client.get(Machine, { ...key, name: 'lone' })
    expect(machine.metadata.ownerReferences).toMatchObject([{ kind: 'MachineSet', controller: true }])
    expect(machine.spec.bootstrap).toEqual({ dataSecretName: 's' })
    const ofSet = machine.metadata.managedFields?.find(({ manager }) => manager === 'capi-machineset')
    expect(ofSet?.fieldsV1).not.toHaveProperty(['f:spec', 'f:bootstrap'])
    expect(await names(env.client, Machine)).toHaveLength(2)
  })

  test('does not count the Machines of an earlier set with the same name', async () => {
    env = await setsEnv()
    await createClusterWithTemplates(env)
    const labels = { app: 'demo', 'cluster.x-k8s.io/cluster-name': 'demo' }
    const owner = { apiVersion: 'cluster.x-k8s.io/v1beta2', kind: 'MachineSet', name: 'set', uid: 'earlier', controller: true }
    await env.client.create(Machine, {
      metadata: { name: 'old', namespace: 'default', labels, finalizers: ['test/hold'], ownerReferences: [owner] },
      spec: { ...aMachineSet().spec.template.spec, bootstrap: { dataSecretName: 's' } },
    })
    await env.client.create(MachineSet, aMachineSet())
    await env.settle()
    expect(await names(env.client, Machine)).toHaveLength(3)
  })

  test('reports that the control plane does not exist, and creates no Machine', async () => {
    env = await setsEnv()
    await createClusterWithTemplates(env)
    const controlPlaneRef = { apiGroup: DevMachineTemplate.group, kind: DevMachineTemplate.kind, name: 'gone' }
    const cluster = { namespace: 'default', name: 'demo' }
    await env.client.patch(Cluster, cluster, { type: 'merge', body: { spec: { controlPlaneRef } } })
    await env.client.create(MachineSet, aMachineSet())
    await env.settle()
    const problem = [
      'failed to perform "Scale up": failed to perform preflight checks: failed to get ControlPlane default/gone',
      'failed to retrieve DevMachineTemplate default/gone: DevMachineTemplate.infra.test "gone" not found',
    ].join(': ')
    expect(conditionText(await env.client.get(MachineSet, key))).toContain(
      `ScalingUp True ScalingUp: Scaling up from 0 to 2 replicas is blocked because:\n* ${problem}`,
    )
    expect(await names(env.client, Machine)).toEqual([])
  })

  test('deletes objects of Machines that do not exist, although its templates are missing', async () => {
    await startSet()
    for (const [kind, name] of [
      [DevMachineTemplate, 'infra'],
      [DevConfigTemplate, 'bootstrap'],
    ] as const) {
      await env.client.delete(kind, { namespace: 'default', name })
    }
    const set = await env.client.get(MachineSet, key)
    const metadata = { name: 'orphan', namespace: 'default', labels: { app: 'demo', 'cluster.x-k8s.io/cluster-name': 'demo' } }
    const ownerReferences = [ownerReference(set, MachineSet)]
    for (const kind of [DevMachine, DevConfig]) {
      await env.client.create<any>(kind, { metadata: { ...metadata, ownerReferences }, spec: {} })
    }
    await env.client.patch(MachineSet, key, { type: 'merge', body: { metadata: { labels: { touched: 'yes' } } } })
    await env.settle()
    for (const kind of [DevMachine, DevConfig]) expect(await names(env.client, kind)).toEqual(await names(env.client, Machine))
  })

  test('creates Machines although the API server rejects the owner reference of its templates', async () => {
    env = await setsEnv({
      between: (transport) =>
        withSend(transport, (request) =>
          request.verb === 'patch' && request.plural.endsWith('templates')
            ? Promise.reject(new StatusError('Forbidden', 'no owners'))
            : transport.send(request),
        ),
    })
    await createClusterWithTemplates(env)
    await env.client.create(MachineSet, aMachineSet())
    await env.settle()
    expect(await names(env.client, Machine)).toHaveLength(2)
    const { metadata } = await env.client.get(DevMachineTemplate, { namespace: 'default', name: 'infra' })
    expect(metadata.ownerReferences).toBeUndefined()
  })

  test('adopts a Machine although the selector of another set is invalid', async () => {
    env = await setsEnv({ withoutValidation: true })
    await createClusterWithTemplates(env)
    const invalid = aMachineSet({ selector: { matchExpressions: [{ key: 'app', operator: 'In' as const, values: [] }] } })
    await env.client.create(MachineSet, { ...invalid, metadata: { ...invalid.metadata, name: 'invalid' } })
    await env.client.create(MachineSet, aMachineSet())
    await env.settle()
    const [machine] = (await env.client.list(Machine, { namespace: 'default' })).items
    const { namespace, labels } = machine!.metadata
    const orphan = { metadata: { name: 'orphan', namespace: namespace!, labels: labels! }, spec: machine!.spec }
    await env.client.create(Machine, orphan)
    await env.settle()
    const { metadata } = await env.client.get(Machine, { namespace: 'default', name: 'orphan' })
    expect(metadata.ownerReferences).toMatchObject([{ kind: 'MachineSet', name: 'set', controller: true }])
  })

  test('is deleted although its selector has matchExpressions', async () => {
    env = await setsEnv()
    await createClusterWithTemplates(env)
    const selector = { matchExpressions: [{ key: 'app', operator: 'Exists' as const }] }
    await env.client.create(MachineSet, aMachineSet({ selector }))
    await env.settle()
    await env.client.delete(MachineSet, key)
    await env.settle()
    expect(await names(env.client, MachineSet)).toEqual([])
  })

  test('is deleted after its Machines', async () => {
    await startSet()
    await env.client.delete(MachineSet, key)
    await env.settle()
    expect(conditionText(await env.client.get(MachineSet, key))).toContain('Deleting True Deleting: Deleting 2 Machines')
    await env.advance(seconds(30))
    expect((await env.client.list(MachineSet, { namespace: 'default' })).items).toEqual([])
    expect(await names(env.client, DevMachine)).toEqual([])
  })

  test('reports only the condition Paused, and creates no Machine, when it is paused from the start', async () => {
    env = await setsEnv()
    await createClusterWithTemplates(env)
    const paused = aMachineSet()
    await env.client.create(MachineSet, {
      ...paused,
      metadata: { ...paused.metadata, annotations: { 'cluster.x-k8s.io/paused': '' } },
    })
    await env.settle()
    const set = await env.client.get(MachineSet, key)
    expect(conditionText(set)).toEqual(['Paused True Paused: MachineSet has the cluster.x-k8s.io/paused annotation'])
    expect(await names(env.client, Machine)).toEqual([])
  })
})

/** Returns the events of a watch that stays open and delivers none. */
const never = (signal: AbortSignal): AsyncIterable<never> => ({
  [Symbol.asyncIterator]: () => ({
    next: () =>
      new Promise((resolve) => {
        signal.addEventListener('abort', () => resolve({ done: true, value: undefined }), { once: true })
      }),
  }),
})

describe('remediation', () => {
  const unhealthy = [
    { type: 'HealthCheckSucceeded', status: 'False', reason: 'UnhealthyNode', message: 'broken' },
    { type: 'OwnerRemediated', status: 'False', reason: 'WaitingForRemediation', message: 'Waiting for remediation' },
  ]
  async function writeConditions(name: string, changed: readonly object[]): Promise<void> {
    const machineKey = { namespace: 'default', name }
    const { status } = await env.client.get(Machine, machineKey)
    const types = changed.map((condition) => (condition as { type: string }).type)
    const others = (status?.conditions ?? []).filter(({ type }) => !types.includes(type))
    const lastTransitionTime = '2026-01-01T00:00:00Z'
    const conditions = [...others, ...changed.map((condition) => ({ ...condition, lastTransitionTime }))]
    await env.client.patch(Machine, machineKey, { type: 'merge', body: { status: { conditions } } }, { subresource: 'status' })
    await env.advance(seconds(30))
  }
  const remediated = async (name: string) => {
    const { status } = await env.client.get(Machine, { namespace: 'default', name })
    return conditionText({ status: { conditions: (status?.conditions ?? []) as never } }).find((text) =>
      text.startsWith('OwnerRemediated'),
    )
  }

  test('replaces a Machine whose remediation a MachineHealthCheck has requested', async () => {
    await startSet()
    const [unhealthyName, healthyName] = (await names(env.client, Machine)) as [string, string]
    await writeConditions(unhealthyName, unhealthy)
    const now = await names(env.client, Machine)
    expect(now).toHaveLength(2)
    expect(now).toContain(healthyName)
    expect(now).not.toContain(unhealthyName)
  })

  test('deletes no Machine while the condition of another one cannot be written', async () => {
    let rejected: string | undefined
    env = await setsEnv({
      between: (transport) =>
        withSend(transport, async (request, signal) => {
          const conditions = JSON.stringify(request.body ?? '')
          if (request.name === rejected && request.subresource === 'status' && conditions.includes('MachineDeleting'))
            throw new StatusError('Forbidden', 'policy')
          return transport.send(request, signal)
        }),
    })
    await createClusterWithTemplates(env)
    await env.client.create(MachineSet, aMachineSet())
    await env.advance(seconds(30))
    const [first, second] = (await names(env.client, Machine)) as [string, string]
    rejected = first
    await env.client.patch(Cluster, { namespace: 'default', name: 'demo' }, { type: 'merge', body: { spec: { paused: true } } })
    await writeConditions(first, unhealthy)
    await writeConditions(second, unhealthy)
    await env.client.patch(Cluster, { namespace: 'default', name: 'demo' }, { type: 'merge', body: { spec: { paused: false } } })
    await env.advance(seconds(30))
    expect(await names(env.client, Machine)).toEqual([first, second])
    rejected = undefined
    await env.advance(seconds(120))
    expect(await names(env.client, Machine)).not.toContain(second)
  })

  test('repeats a deletion that the API server rejects, and logs the error', async () => {
    let rejects = true
    const errors: string[] = []
    const log: Logger = { ...silent, error: (_, fields) => void errors.push(messageOf(fields?.['err'])), child: () => log }
    env = await setsEnv({
      log,
      between: (transport) =>
        withSend(transport, async (request, signal) => {
          if (rejects && request.plural === 'machines' && request.verb === 'delete') throw new StatusError('Forbidden', 'policy')
          return transport.send(request, signal)
        }),
    })
    await createClusterWithTemplates(env)
    await env.client.create(MachineSet, aMachineSet())
    await env.advance(seconds(30))
    const [name] = (await names(env.client, Machine)) as [string]
    await writeConditions(name, unhealthy)
    expect(await names(env.client, Machine)).toContain(name)
    expect(new Set(errors)).toEqual(
      new Set([`Cannot reconcile MachineSet default/set: failed to remediate Machine default/${name}: policy`]),
    )
    rejects = false
    await env.advance(seconds(120))
    expect(await names(env.client, Machine)).not.toContain(name)
  })

  test('keeps an unhealthy Machine that cannot be replaced because the bootstrap template does not exist', async () => {
    await startSet()
    const [name] = (await names(env.client, Machine)) as [string]
    await env.client.delete(DevConfigTemplate, { namespace: 'default', name: 'bootstrap' })
    await writeConditions(name, unhealthy)
    expect(await names(env.client, Machine)).toContain(name)
    expect(await remediated(name)).toBe(
      'OwnerRemediated False RemediationDeferred: * failed to read machineset.cluster.x-k8s.io/skip-preflight-checks annotation: failed to retrieve DevConfigTemplate default/bootstrap: DevConfigTemplate.bootstrap.test "bootstrap" not found',
    )
  })

  test('removes the remediation request of a Machine that is healthy again', async () => {
    await startSet()
    const [recoveredName] = (await names(env.client, Machine)) as [string]
    await writeConditions(recoveredName, [
      { ...unhealthy[0], status: 'True', reason: 'HealthCheckSucceeded', message: '' },
      unhealthy[1]!,
    ])
    expect(await remediated(recoveredName)).toBeUndefined()
    expect(await names(env.client, Machine)).toContain(recoveredName)
  })

  test('keeps the v1beta1 form of a remediation request while only the v1beta2 conditions report a healthy Machine', async () => {
    await startSet()
    const [name] = (await names(env.client, Machine)) as [string]
    const condition = { type: 'OwnerRemediated', status: 'False', severity: 'Warning', reason: 'WaitingForRemediation' }
    const deprecated = { v1beta1: { conditions: [{ ...condition, lastTransitionTime: '2026-01-01T00:00:00Z' }] } }
    const body = { status: { deprecated } }
    await env.client.patch(Machine, { namespace: 'default', name }, { type: 'merge', body }, { subresource: 'status' })
    await writeConditions(name, [{ ...unhealthy[0], status: 'True', reason: 'HealthCheckSucceeded', message: '' }, unhealthy[1]!])
    expect(await remediated(name)).toBeUndefined()
    const { status } = await env.client.get(Machine, { namespace: 'default', name })
    expect(status?.deprecated?.v1beta1?.conditions).toMatchObject([condition])
  })

  test('of a MachineDeployment keeps within maxInFlight', async () => {
    env = await setsEnv()
    await createClusterWithTemplates(env)
    await env.client.create(MachineDeployment, aMachineDeployment({ remediation: { maxInFlight: 0 } }))
    await env.advance(seconds(60))
    const [unhealthyName] = (await names(env.client, Machine)) as [string]
    await writeConditions(unhealthyName, unhealthy)
    expect(await remediated(unhealthyName)).toBe(
      'OwnerRemediated False RemediationDeferred: Waiting because there are already too many remediations in progress (spec.strategy.remediation.maxInFlight is 0)',
    )
    await env.client.patch(
      MachineDeployment,
      { namespace: 'default', name: 'workers' },
      { type: 'merge', body: { spec: { remediation: { maxInFlight: '10%' } } } },
    )
    await env.advance(seconds(60))
    expect(await names(env.client, Machine)).not.toContain(unhealthyName)
  })
})
