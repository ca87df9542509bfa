import { Cluster, coreKinds, Machine, MachineHealthCheck, type MachineHealthCheckSpec } from '@capstan/api'
import { Event, hours, legacyConditionsOf, minutes, Node, seconds, StatusError, type Transport, withSend } from '@capstan/kube'
import {
  conditionText,
  coreEnv,
  type CoreEnv,
  DevCluster,
  DevClusterTemplate,
  devKinds,
  DevMachine,
  devTemplateKinds,
} from '@capstan/testing'
import { afterEach, describe, expect, test } from 'vitest'

let env: CoreEnv
afterEach(() => env.close())

const labels = { pool: 'workers' }
const notReady = { unhealthyNodeConditions: [{ type: 'Ready', status: 'False', timeoutSeconds: 300 }] }

async function startEnv(
  spec: Partial<MachineHealthCheckSpec> = {},
  machines: readonly string[] = ['a', 'b'],
  options: Parameters<typeof coreEnv>[0] = {},
): Promise<void> {
  env = await coreEnv({ kinds: [...coreKinds, ...devKinds, ...devTemplateKinds], ...options })
  await env.provisionCluster()
  for (const name of machines) await env.provisionMachine(name, { labels })
  const check = { clusterName: 'demo', selector: { matchLabels: labels }, checks: notReady, ...spec }
  await env.create(MachineHealthCheck, 'workers', { spec: check })
  await env.advance(seconds(30))
}

async function setNodeReady(name: string, status: 'True' | 'False'): Promise<void> {
  const lastTransitionTime = new Date(env.clock.now()).toISOString().replace(/\.\d+Z$/, 'Z')
  const conditions = [{ type: 'Ready', status, reason: 'KubeletNotReady', message: 'off', lastTransitionTime }]
  await env.workload.patch(
    Node,
    { name: `node-${name}` },
    { type: 'merge', body: { status: { conditions } } },
    { subresource: 'status' },
  )
  await env.advance(seconds(1))
}

const health = async (name: string) => conditionText(await env.get(Machine, name), 'HealthCheckSucceeded')
const ownerRemediated = async (name: string) => conditionText(await env.get(Machine, name), 'OwnerRemediated')
const status = async () => (await env.get(MachineHealthCheck, 'workers')).status!
const eventReasons = async () =>
  (await env.client.list(Event, { namespace: 'default' })).items.map((event) => (event as { reason?: string }).reason)

describe('a MachineHealthCheck', () => {
  test('reports healthy Machines, and gets the label and the owner reference of its Cluster', async () => {
    await startEnv()
    expect(await health('a')).toBe('True HealthCheckSucceeded')
    expect(await status()).toMatchObject({
      expectedMachines: 2,
      currentHealthy: 2,
      remediationsAllowed: 2,
      targets: ['a', 'b'],
      observedGeneration: 1,
    })
    const check = await env.get(MachineHealthCheck, 'workers')
    expect(conditionText(check, 'RemediationAllowed')).toBe('True RemediationAllowed')
    expect(legacyConditionsOf(check)).toMatchObject([{ type: 'RemediationAllowed', status: 'True' }])
    expect(check.metadata).toMatchObject({
      labels: { 'cluster.x-k8s.io/cluster-name': 'demo' },
      ownerReferences: [{ kind: 'Cluster', name: 'demo' }],
    })
  })

  test('does not mark a Machine as unhealthy when its Node is deleted with it', async () => {
    await startEnv()
    // Without a control plane Machine, the Machine controller would not delete the Node of the Machine.
    await env.provisionMachine('cp', { labels: { 'cluster.x-k8s.io/control-plane': '' } })
    await env.client.delete(Machine, { namespace: 'default', name: 'a' })
    await env.advance(minutes(1))
    expect(await status()).toMatchObject({ expectedMachines: 1, currentHealthy: 1 })
    expect(await eventReasons()).toContain('SuccessfulDrainNode')
    expect(await eventReasons()).not.toContain('MachineMarkedUnhealthy')
  })

  test('records no event for a Machine that was deleted before its status is written', async () => {
    let isDeleted = false
    const between = (transport: Transport): Transport =>
      withSend(transport, async (request, signal) => {
        if (isDeleted && request.subresource === 'status' && request.plural === Machine.plural)
          throw new StatusError('NotFound', 'the Machine was deleted')
        return transport.send(request, signal)
      })
    await startEnv({}, ['a'], { between })
    isDeleted = true
    await env.patch(Machine, 'a', { metadata: { annotations: { 'cluster.x-k8s.io/remediate-machine': '' } } })
    await env.advance(seconds(5))
    expect(await eventReasons()).not.toContain('MachineMarkedUnhealthy')
    isDeleted = false
    await env.patch(Machine, 'a', { metadata: { labels: { changed: 'yes' } } })
    await env.advance(seconds(5))
    expect(await eventReasons()).toContain('MachineMarkedUnhealthy')
  })

  test('requests remediation by the owner only after a Node condition has lasted for its timeout', async () => {
    await startEnv()
    await setNodeReady('a', 'False')
    await env.advance(minutes(5) - seconds(5))
    expect([await health('a'), await ownerRemediated('a')]).toEqual(['True HealthCheckSucceeded', undefined])
    expect(await status()).toMatchObject({ expectedMachines: 2, currentHealthy: 1, remediationsAllowed: 1 })

    await env.advance(seconds(10))
    expect(await health('a')).toBe(
      'False UnhealthyNode: Health check failed:\n  * Condition Ready on Node is reporting status False with reason KubeletNotReady for more than 5m0s',
    )
    expect(await ownerRemediated('a')).toBe('False WaitingForRemediation: Waiting for remediation')
    expect(legacyConditionsOf(await env.get(Machine, 'a'))).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ type: 'HealthCheckSucceeded', status: 'False', reason: 'UnhealthyNode', severity: 'Warning' }),
        expect.objectContaining({ type: 'OwnerRemediated', status: 'False', reason: 'WaitingForRemediation' }),
      ]),
    )
    expect(await eventReasons()).toContain('MachineMarkedUnhealthy')
    expect(await health('b')).toBe('True HealthCheckSucceeded')

    await setNodeReady('a', 'True')
    expect(await health('a')).toBe('True HealthCheckSucceeded')
  })

  test('reports an unhealthy Machine at most one timeout after a clock that was set back is corrected', async () => {
    await startEnv()
    await setNodeReady('a', 'False')
    env.clock.shift(-hours(1))
    await env.advance(minutes(5) + seconds(10))
    expect(await health('a')).toBe('True HealthCheckSucceeded')
    env.clock.shift(hours(1))
    await env.advance(minutes(5) + seconds(10))
    expect(await health('a')).toMatch('False UnhealthyNode')
  })

  test('reports a Machine as unhealthy after its Node was deleted', async () => {
    await startEnv()
    await env.workload.delete(Node, { name: 'node-b' })
    await env.advance(seconds(1))
    expect(await health('b')).toBe('False NodeDeleted: Health check failed:\n  * Node node-b has been deleted')
    const legacy = legacyConditionsOf(await env.get(Machine, 'b')).find(({ type }) => type === 'HealthCheckSucceeded')
    expect(legacy).toMatchObject({ status: 'False', reason: 'NodeNotFound', severity: 'Warning' })
  })

  test('reports a Machine without Node as unhealthy after nodeStartupTimeout', async () => {
    await startEnv({ checks: { nodeStartupTimeoutSeconds: 60 } }, ['a'])
    await env.create(DevMachine, 'late')
    const { spec } = await env.get(Machine, 'a')
    const { providerID: _, ...withoutProviderID } = spec
    const infrastructureRef = { ...spec.infrastructureRef, name: 'late' }
    await env.create(Machine, 'late', { metadata: { labels }, spec: { ...withoutProviderID, infrastructureRef } })
    await env.advance(seconds(55))
    expect(await health('late')).toBeUndefined()
    await env.advance(seconds(10))
    expect(await health('late')).toBe('False NodeStartupTimeout: Health check failed:\n  * Node failed to report startup in 1m0s')
  })

  test('reports a Machine as unhealthy when a user marks it for remediation, and checks no excluded or paused Machine', async () => {
    await startEnv({}, ['a', 'b', 'c'])
    await env.patch(Machine, 'a', { metadata: { annotations: { 'cluster.x-k8s.io/remediate-machine': '' } } })
    await env.patch(Machine, 'b', { metadata: { annotations: { 'cluster.x-k8s.io/skip-remediation': '' } } })
    await env.patch(Machine, 'c', { metadata: { annotations: { 'cluster.x-k8s.io/paused': '' } } })
    await env.advance(seconds(5))
    expect(await health('a')).toBe(
      'False HasRemediateAnnotation: Health check failed: marked for remediation via cluster.x-k8s.io/remediate-machine annotation',
    )
    expect(await status()).toMatchObject({ expectedMachines: 1, currentHealthy: 0, targets: ['a'] })
  })

  test('allows no remediation while too many Machines are unhealthy, and records one event', async () => {
    await startEnv({ remediation: { triggerIf: { unhealthyLessThanOrEqualTo: 1 } } })
    for (const name of ['a', 'b']) await env.workload.delete(Node, { name: `node-${name}` })
    await env.advance(seconds(5))
    const check = await env.get(MachineHealthCheck, 'workers')
    expect(conditionText(check, 'RemediationAllowed')).toBe(
      'False TooManyUnhealthy: Remediation is not allowed, the number of not started or unhealthy machines exceeds maxUnhealthy (total: 2, unhealthy: 2, maxUnhealthy: 1)',
    )
    expect(check.status).toMatchObject({ remediationsAllowed: 0 })
    expect([await health('a'), await health('b')].map((text) => text?.slice(0, 17))).toEqual([
      'False NodeDeleted',
      'False NodeDeleted',
    ])
    expect((await eventReasons()).filter((reason) => reason === 'RemediationRestricted')).toHaveLength(1)
  })

  test('records no MachineMarkedUnhealthy event while remediation is not allowed', async () => {
    await startEnv({ remediation: { triggerIf: { unhealthyLessThanOrEqualTo: 0 } } })
    await env.workload.delete(Node, { name: 'node-a' })
    await env.advance(seconds(5))
    expect(await health('a')).toContain('False NodeDeleted')
    expect(await eventReasons()).not.toContain('MachineMarkedUnhealthy')
    await env.client.patch(
      MachineHealthCheck,
      { namespace: 'default', name: 'workers' },
      { type: 'merge', body: { spec: { remediation: { triggerIf: { unhealthyLessThanOrEqualTo: 2 } } } } },
    )
    await env.advance(seconds(5))
    expect(await eventReasons()).toContain('MachineMarkedUnhealthy')
  })

  test('limits its writes while another MachineHealthCheck disagrees about the same Machine', async () => {
    const checks = { unhealthyNodeConditions: [{ type: 'Ready', status: 'False', timeoutSeconds: 0 }] }
    await startEnv({ checks }, ['a'])
    const spec = { clusterName: 'demo', selector: { matchLabels: labels }, checks: { nodeStartupTimeoutSeconds: 600 } }
    await env.create(MachineHealthCheck, 'other', { spec })
    await env.advance(seconds(30))
    await setNodeReady('a', 'False')
    await env.advance(minutes(1))
    const revisionBefore = env.store.revision
    await env.advance(minutes(1))
    expect(env.store.revision - revisionBefore).toBeLessThan(100)
  })

  test('writes nothing while nothing changes', async () => {
    await startEnv()
    const revisionBefore = env.store.revision
    await env.advance(minutes(3))
    expect(env.store.revision).toBe(revisionBefore)
  })

  test('reports only Paused while the Cluster is paused', async () => {
    await startEnv()
    await env.patch(Cluster, 'demo', { spec: { paused: true } })
    await env.workload.delete(Node, { name: 'node-a' })
    await env.advance(seconds(5))
    expect(await health('a')).toBe('True HealthCheckSucceeded')
    expect(conditionText(await env.get(MachineHealthCheck, 'workers'), 'Paused')).toMatch(/^True Paused/)
  })
})

describe('external remediation', () => {
  // For these tests, a template of any kind is sufficient.
  const templateRef = { apiVersion: 'infra.example.com/v1beta1', kind: 'DevClusterTemplate', name: 'reboot' }
  /** Names of all DevClusters: the remediation requests, and `demo`, which is the infrastructure of the Cluster. */
  const devClusters = async () =>
    (await env.client.list(DevCluster, { namespace: 'default' })).items.map(({ metadata }) => metadata.name)
  const external = async () => conditionText(await env.get(Machine, 'a'), 'ExternallyRemediated')

  test('reports a missing template, creates the request once the template exists, and deletes it when the Machine is healthy', async () => {
    await startEnv({ remediation: { templateRef } })
    await env.patch(Machine, 'a', { metadata: { annotations: { 'cluster.x-k8s.io/remediate-machine': '' } } })
    await env.advance(seconds(1))
    expect(await external()).toBe(
      'False RemediationTemplateNotFound: Error retrieving remediation template DevClusterTemplate default/reboot',
    )

    await env.create(DevClusterTemplate, 'reboot', { spec: { template: { spec: { reboot: true } } } })
    await env.advance(minutes(20))
    expect(await external()).toBe('False WaitingForRemediation')
    expect(await env.get(DevCluster, 'a')).toMatchObject({
      metadata: {
        ownerReferences: [{ kind: 'Machine', name: 'a' }],
        labels: { 'cluster.x-k8s.io/cluster-name': 'demo' },
        annotations: { 'cluster.x-k8s.io/cloned-from-name': 'reboot' },
      },
      spec: { reboot: true },
    })
    expect([await devClusters(), await ownerRemediated('a')]).toEqual([['a', 'demo'], undefined])

    await env.patch(Machine, 'a', { metadata: { annotations: { 'cluster.x-k8s.io/remediate-machine': null } } })
    await env.advance(seconds(5))
    expect([await health('a'), await devClusters()]).toEqual(['True HealthCheckSucceeded', ['demo']])
  })

  const unmarked = { metadata: { annotations: { 'cluster.x-k8s.io/remediate-machine': null } } }
  const marked = { metadata: { annotations: { 'cluster.x-k8s.io/remediate-machine': '' } } }
  const createTemplate = () => env.create(DevClusterTemplate, 'reboot', { spec: { template: { spec: { reboot: true } } } })

  test('records MachineMarkedUnhealthy when remediation becomes allowed after the Machine became unhealthy', async () => {
    await startEnv({ remediation: { templateRef, triggerIf: { unhealthyLessThanOrEqualTo: 0 } } })
    await createTemplate()
    await env.patch(Machine, 'a', marked)
    await env.advance(seconds(5))
    expect(await health('a')).toMatch(/^False HasRemediateAnnotation/)
    expect(await eventReasons()).not.toContain('MachineMarkedUnhealthy')
    await env.patch(MachineHealthCheck, 'workers', { spec: { remediation: { triggerIf: { unhealthyLessThanOrEqualTo: 1 } } } })
    await env.advance(seconds(5))
    expect(await devClusters()).toEqual(['a', 'demo'])
    expect((await eventReasons()).filter((reason) => reason === 'MachineMarkedUnhealthy')).toHaveLength(1)
  })

  test('waits for remediation again after a new request, although an earlier one succeeded', async () => {
    await startEnv({ remediation: { templateRef } })
    await createTemplate()
    await env.patch(Machine, 'a', marked)
    await env.advance(seconds(5))
    const lastTransitionTime = new Date(env.clock.now()).toISOString()
    const { conditions = [] } = (await env.get(Machine, 'a')).status ?? {}
    const others = conditions.filter(({ type }) => type !== 'ExternallyRemediated')
    const done = { type: 'ExternallyRemediated', status: 'True', reason: 'Rebooted', message: '', lastTransitionTime }
    await env.patch(Machine, 'a', { status: { conditions: [...others, done] } })
    await env.patch(Machine, 'a', unmarked)
    await env.advance(seconds(5))
    expect([await devClusters(), await external()]).toEqual([['demo'], 'True Rebooted'])
    await env.patch(Machine, 'a', marked)
    await env.advance(seconds(5))
    expect([await devClusters(), await external()]).toEqual([['a', 'demo'], 'False WaitingForRemediation'])
  })

  test('reports a template of an unknown kind', async () => {
    await startEnv({ remediation: { templateRef: { ...templateRef, kind: 'NothingTemplate' } } }, ['a'])
    await env.patch(Machine, 'a', marked)
    await env.advance(seconds(1))
    expect(legacyConditionsOf(await env.get(MachineHealthCheck, 'workers'))).toContainEqual(
      expect.objectContaining({
        message:
          'failed to retrieve NothingTemplate default/reboot: no matches for kind "NothingTemplate" in version "infra.example.com/v1beta1"',
      }),
    )
  })

  test('reports a template that cannot be read', async () => {
    const between = (transport: Transport): Transport =>
      withSend(transport, async (request, signal) => {
        if (request.verb === 'get' && request.plural === DevClusterTemplate.plural)
          throw new StatusError('Forbidden', 'no permission')
        return transport.send(request, signal)
      })
    await startEnv({ remediation: { templateRef } }, ['a'], { between })
    await env.patch(Machine, 'a', marked)
    await env.advance(seconds(1))
    expect(await external()).toBe(
      'False RemediationTemplateNotFound: Error retrieving remediation template DevClusterTemplate default/reboot',
    )
    expect(legacyConditionsOf(await env.get(MachineHealthCheck, 'workers'))).toContainEqual(
      expect.objectContaining({
        type: 'ExternalRemediationTemplateAvailable',
        status: 'False',
        severity: 'Error',
        reason: 'ExternalRemediationTemplateNotFound',
        message: 'failed to retrieve DevClusterTemplate default/reboot: no permission',
      }),
    )
  })
})
