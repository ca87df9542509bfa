import { Machine, MachineDrainRule } from '@capstan/api'
import { DaemonSet, defineKind, legacyConditionsOf, Node, orAbsent, Pod, s, seconds } from '@capstan/kube'
import { conditionText, coreEnv, type CoreEnv } from '@capstan/testing'
import { afterEach, expect, test } from 'vitest'

let env: CoreEnv
afterEach(() => env.close())

/** Starts an environment with a control plane Machine and the Machine `m1`, which the tests delete. */
async function startEnv(): Promise<void> {
  env = await coreEnv()
  await env.provisionCluster()
  await env.provisionMachine('cp', { labels: { 'cluster.x-k8s.io/control-plane': '' } })
  await env.provisionMachine('m1')
}

interface PodOptions {
  namespace?: string
  labels?: { [key: string]: string }
  /** Has a finalizer, so that the deleted Pod exists until `removeFinalizer`. */
  sticky?: boolean
  daemonSet?: DaemonSet
  claims?: string[]
}

async function aPod(
  name: string,
  { namespace = 'default', labels, sticky, daemonSet, claims = [] }: PodOptions = {},
): Promise<void> {
  await env.workload.create(Pod, {
    metadata: {
      name,
      namespace,
      ...(labels ? { labels } : {}),
      ...(sticky ? { finalizers: ['example.com/sticky'] } : {}),
      ...(daemonSet
        ? {
            ownerReferences: [
              {
                apiVersion: 'apps/v1',
                kind: 'DaemonSet',
                name: daemonSet.metadata.name,
                uid: daemonSet.metadata.uid,
                controller: true,
              },
            ],
          }
        : {}),
    },
    spec: {
      nodeName: 'node-m1',
      containers: [{ name: 'main', image: 'x' }],
      volumes: claims.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })),
    } as never,
  })
}

const inDefault = (name: string) => ({ namespace: 'default', name })
const exists = async (name: string) => (await orAbsent(env.workload.get(Pod, inDefault(name)))) !== undefined
const removeFinalizer = (name: string) =>
  env.workload.patch(Pod, inDefault(name), { type: 'merge', body: { metadata: { finalizers: null } } })

async function deleteMachine(): Promise<void> {
  await env.client.delete(Machine, inDefault('m1'))
  await env.settle()
}
const machineExists = async () => (await orAbsent(env.get(Machine, 'm1'))) !== undefined

/** Returns the lines of the Deleting condition's message, without the first one. */
async function deletingLines(): Promise<string[]> {
  const machine = await env.get(Machine, 'm1')
  return conditionText(machine, 'Deleting')!.split('\n').slice(1)
}

test('MachineDrainRules determine which Pods are evicted, which must complete, in which order, and which are skipped', async () => {
  await startEnv()
  const rule = (name: string, drain: MachineDrainRule['spec']['drain'], app: string) =>
    env.create(MachineDrainRule, name, { spec: { drain, pods: [{ selector: { matchLabels: { app } } }] } })
  await rule('first', { behavior: 'Drain', order: -5 }, 'web')
  await rule('last', { behavior: 'Drain', order: 10 }, 'db')
  await rule('skip', { behavior: 'Skip' }, 'agent')
  await rule('wait', { behavior: 'WaitCompleted' }, 'job')
  await env.create(MachineDrainRule, 'a-other-machines', {
    spec: { drain: { behavior: 'Skip' }, machines: [{ selector: { matchLabels: { os: 'windows' } } }] },
  })
  for (const app of ['web', 'db', 'agent', 'job', 'plain']) await aPod(app, { labels: { app }, sticky: app !== 'agent' })

  await deleteMachine()
  expect(await deletingLines()).toEqual([
    '* Pod default/web: deletionTimestamp set, but still not removed from the Node',
    'After above Pods have been removed from the Node, the following Pods will be evicted: default/db, default/plain',
    'After above Pods have been removed from the Node, waiting for the following Pods to complete without eviction: default/job',
  ])

  await removeFinalizer('web')
  await env.advance(seconds(6))
  expect(await deletingLines()).toEqual([
    '* Pod default/plain: deletionTimestamp set, but still not removed from the Node',
    '* Pod default/job: waiting for completion',
    'After above Pods have been removed from the Node, the following Pods will be evicted: default/db',
  ])

  await removeFinalizer('plain')
  await removeFinalizer('job')
  await env.workload.delete(Pod, inDefault('job'))
  await env.advance(seconds(6))
  expect(await deletingLines()).toEqual(['* Pod default/db: deletionTimestamp set, but still not removed from the Node'])

  await removeFinalizer('db')
  await env.advance(seconds(6))
  expect(await machineExists()).toBe(false)
  expect(await exists('agent')).toBe(true)
})

test('a rule that changes during a drain applies at the next reconcile', async () => {
  await startEnv()
  await env.create(MachineDrainRule, 'wait', { spec: { drain: { behavior: 'WaitCompleted' } } })
  await aPod('web')
  await deleteMachine()
  expect(await deletingLines()).toEqual(['* Pod default/web: waiting for completion'])

  await env.patch(MachineDrainRule, 'wait', { spec: { drain: { behavior: 'Skip' } } })
  await env.advance(seconds(6))
  expect(await machineExists()).toBe(false)
  expect(await exists('web')).toBe(true)
})

const PodDisruptionBudget = defineKind({
  group: 'policy',
  version: 'v1',
  kind: 'PodDisruptionBudget',
  plural: 'poddisruptionbudgets',
  scope: 'Namespaced',
  spec: s.unknownObject(),
  status: s.unknownObject(),
})

test('evictions are retried while a PodDisruptionBudget rejects them', async () => {
  await startEnv()
  await aPod('web', { labels: { app: 'web' } })
  const key = inDefault('web')
  await env.workload.create(PodDisruptionBudget, {
    metadata: key,
    spec: { minAvailable: 1, selector: { matchLabels: { app: 'web' } } },
  })
  const allow = (disruptionsAllowed: number) =>
    env.workload.patch(
      PodDisruptionBudget,
      key,
      {
        type: 'merge',
        body: {
          status: { observedGeneration: 1, disruptionsAllowed, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1 },
        },
      },
      { subresource: 'status' },
    )
  await allow(0)
  await env.workload.patch(
    Pod,
    key,
    { type: 'merge', body: { status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } } },
    { subresource: 'status' },
  )
  await deleteMachine()
  expect(await deletingLines()).toEqual([
    "* Pod default/web: cannot evict pod as it would violate the pod's disruption budget. The disruption budget web needs 1 healthy pods and has 1 currently",
  ])
  await allow(1)
  await env.advance(seconds(11))
  expect(await machineExists()).toBe(false)
})

test('the deletion waits until volumes are detached, except volumes of skipped Pods', async () => {
  await startEnv()
  const { workload } = env
  const daemonSet = await workload.create(DaemonSet, {
    metadata: inDefault('agent'),
    spec: {
      selector: { matchLabels: { app: 'agent' } },
      template: { metadata: { labels: { app: 'agent' } }, spec: { containers: [{ name: 'main', image: 'x' }] } },
    },
  })
  await aPod('agent-1', { daemonSet, claims: ['logs'] })
  const volume = (name: string, claim: string) =>
    workload.create(PersistentVolume, {
      metadata: { name },
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce'],
        csi: { driver: 'dummy', volumeHandle: name },
        claimRef: { kind: 'PersistentVolumeClaim', namespace: 'default', name: claim },
      },
    })
  await volume('pv-logs', 'logs')
  await volume('pv-data', 'data')
  for (const name of ['pv-logs', 'pv-data']) {
    await workload.create(VolumeAttachment, {
      metadata: { name },
      spec: { attacher: 'dummy', nodeName: 'node-m1', source: { persistentVolumeName: name } },
    })
    const body = { status: { attached: true } }
    await workload.patch(VolumeAttachment, { name }, { type: 'merge', body }, { subresource: 'status' })
  }
  const status = { volumesAttached: [{ name: 'kubernetes.io/csi/dummy^pv-logs', devicePath: '' }] }
  await workload.patch(Node, { name: 'node-m1' }, { type: 'merge', body: { status } }, { subresource: 'status' })

  await deleteMachine()
  expect(await deletingLines()).toEqual(['* PersistentVolumeClaims: default/data'])

  await workload.delete(VolumeAttachment, { name: 'pv-data' })
  await env.advance(seconds(6))
  expect(await machineExists()).toBe(false)
  expect(await exists('agent-1')).toBe(true)
})

// Upstream: reconcileDelete in machine_controller.go, v1.14.
test('a drain that fails is reported with its error in the v1beta1 condition DrainingSucceeded', async () => {
  await startEnv()
  env.reachable = false
  await deleteMachine()
  const machine = await env.get(Machine, 'm1')
  expect(legacyConditionsOf(machine).find(({ type }) => type === 'DrainingSucceeded')).toMatchObject({
    status: 'False',
    severity: 'Warning',
    reason: 'DrainingFailed',
    message: 'failed to cordon Node node-m1: failed to cordon Node: connect ECONNREFUSED',
  })
})

const clusterScoped = (group: string, kind: string, plural: string) =>
  defineKind({ group, version: 'v1', kind, plural, scope: 'Cluster', spec: s.unknownObject(), status: s.unknownObject() })
const PersistentVolume = clusterScoped('', 'PersistentVolume', 'persistentvolumes')
const VolumeAttachment = clusterScoped('storage.k8s.io', 'VolumeAttachment', 'volumeattachments')
