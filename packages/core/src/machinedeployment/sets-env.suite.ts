/**
 * Test environment: an API server with the MachineSet and MachineDeployment controllers, provider kinds without a controller, and a
 * stand-in for the Machine controller.
 */
import {
  Cluster,
  isUpdatePending,
  Machine,
  MachineDeployment,
  MachineFinalizer,
  MachineSet,
  PendingHooksAnnotation,
  UpdateInProgressAnnotation,
} from '@capstan/api'
import type { Controller, Index } from '@capstan/controller'
import { commitChanges, proceed, requeue, watches } from '@capstan/controller'
import type { RuntimeClient } from '@capstan/extension'
import {
  type Client,
  controllerOf,
  controllerReference,
  type DeclaredKind,
  defineKind,
  draft,
  isDeleting,
  keyOf,
  type NewCondition,
  type ObjectOf,
  orAbsent,
  removeFinalizer,
  s,
  seconds,
  setConditions,
} from '@capstan/kube'
import { abortable, testEnv, type TestEnv, type TestEnvOptions } from '@capstan/testing'
import { templateDifferences } from '../machine/template-differences.ts'
import { createMachineSetController } from '../machineset/controller.ts'
import { createMachineDeploymentController } from './controller.ts'

const anyObject = s.object({ size: s.string().optional() })
const labels = { 'cluster.x-k8s.io/v1beta2': 'v1' }
const provider = (group: string, kind: string, plural: string) =>
  defineKind({ group, version: 'v1', kind, plural, scope: 'Namespaced', labels, spec: anyObject })
const template = (group: string, kind: string, plural: string) =>
  defineKind({
    group,
    version: 'v1',
    kind,
    plural,
    scope: 'Namespaced',
    labels,
    spec: s.object({
      template: s.object({ metadata: s.object({ labels: s.map(s.string()).optional() }).optional(), spec: anyObject }),
    }),
  })

export const DevMachine = provider('infra.test', 'DevMachine', 'devmachines')
export const DevMachineTemplate = template('infra.test', 'DevMachineTemplate', 'devmachinetemplates')
/** Kinds with the names of `DevMachine` and `DevMachineTemplate`, in another group. */
const OtherMachine = provider('other.test', 'DevMachine', 'devmachines')
export const OtherMachineTemplate = template('other.test', 'DevMachineTemplate', 'devmachinetemplates')
export const DevConfig = provider('bootstrap.test', 'DevConfig', 'devconfigs')
export const DevConfigTemplate = template('bootstrap.test', 'DevConfigTemplate', 'devconfigtemplates')
export type DevMachine = ObjectOf<typeof DevMachine>

const allMachines: Index<Machine> = { name: 'all machines', kind: Machine, values: () => [''] }

/**
 * Creates a stand-in for the Machine controller. Machines become available `delay` ms after their creation, and deletions and in-place
 * updates take as long.
 */
function createMachineStandIn(delay: number): Controller<Machine> {
  const updatingSince = new Map<string, number>()
  return {
    name: 'machine stand-in',
    for: Machine,
    watches: [watches(MachineDeployment, (_, cache) => cache.byIndex(allMachines, '').map(keyOf))],
    async reconcile(key, { cache, client, clock, signal }) {
      const cached = cache.peek(Machine, key)
      if (!cached) return proceed()
      const since = Date.parse(cached.metadata.deletionTimestamp ?? cached.metadata.creationTimestamp)
      const remainingDelay = since + delay - clock.now()
      if (remainingDelay > 0) return requeue(remainingDelay, 'time')
      const machine = draft(cached)
      if (isDeleting(machine)) {
        for (const kind of [DevMachine, DevConfig]) await orAbsent(client.delete(kind, key, { signal }))
        removeFinalizer(machine, MachineFinalizer)
      } else if (isUpdatePending(machine)) {
        const started = updatingSince.get(key.name) ?? clock.now()
        updatingSince.set(key.name, started)
        if (clock.now() < started + delay) return requeue(started + delay - clock.now(), 'time')
        updatingSince.delete(key.name)
        await endUpdate(client, machine, signal)
        return proceed()
      } else {
        if (!machine.status?.nodeRef) await adoptObjects(client, machine, signal)
        machine.status = { ...machine.status, nodeRef: { name: key.name } }
        const condition = (type: string, status: 'True' | 'False', message = ''): NewCondition => ({
          type,
          status,
          reason: type,
          message,
        })
        const set = cache.peek(MachineSet, { ...key, name: controllerOf(machine)!.name })
        const owner = set && controllerOf(set)
        const deployment = owner && cache.peek(MachineDeployment, { ...key, name: owner.name })
        const outdated = set && deployment ? templateDifferences(set.spec.template, deployment.spec.template) : []
        const conditions = [
          condition('Ready', 'True'),
          condition('Available', 'True'),
          outdated.length > 0
            ? condition('UpToDate', 'False', outdated.map((line) => `* ${line}`).join('\n'))
            : condition('UpToDate', 'True'),
        ]
        machine.status.conditions = setConditions(machine.status.conditions, conditions, { now: clock.now() })
      }
      await commitChanges(client, Machine, cached, machine, { conditions: ['Ready', 'Available', 'UpToDate'], signal })
      return proceed()
    },
  }
}

/** Makes the Machine the controller of the provider objects that the MachineSet created for it. */
async function adoptObjects(client: Client, machine: Machine, signal: AbortSignal): Promise<void> {
  const body = { metadata: { ownerReferences: [controllerReference(machine, Machine)] } }
  for (const kind of [DevMachine, DevConfig]) await client.patch<any>(kind, keyOf(machine), { type: 'merge', body }, { signal })
}

/** Removes the annotations in the Machine controller's order: the Machine's update annotation first, its pending hook last. */
async function endUpdate(client: Client, { metadata: { namespace, name } }: Machine, signal: AbortSignal): Promise<void> {
  const without = (annotation: string) => ({
    type: 'merge' as const,
    body: { metadata: { annotations: { [annotation]: null } } },
  })
  const key = { namespace: namespace!, name }
  for (const kind of [Machine, DevMachine, DevConfig])
    await client.patch<any>(kind, key, without(UpdateInProgressAnnotation), { signal })
  await client.patch(Machine, key, without(PendingHooksAnnotation), { signal })
}

export interface SetsEnv extends TestEnv {
  /** Version, replicas (existing/wanted) and available replicas of each MachineSet, oldest first. */
  counts(): Promise<string>
}

export interface SetsEnvOptions extends Partial<TestEnvOptions> {
  /** Delay of the stand-in for the Machine controller, in milliseconds; 10 s by default. */
  readonly machineDelay?: number
  /** Responds to CanUpdateMachineSet; without it, Machines are not updated in place. */
  readonly runtime?: RuntimeClient
  /** Whether the API server validates objects only by their schemas, as one without Capstan's webhooks. */
  readonly withoutValidation?: boolean
}

export async function setsEnv(options: SetsEnvOptions = {}): Promise<SetsEnv> {
  const { machineDelay = seconds(10), runtime, withoutValidation = false, ...rest } = options
  const { between = (transport) => transport, ...envOptions } = rest
  const kinds: DeclaredKind[] = [
    Cluster,
    MachineDeployment,
    MachineSet,
    Machine,
    DevMachine,
    DevMachineTemplate,
    OtherMachine,
    OtherMachineTemplate,
    DevConfig,
    DevConfigTemplate,
  ]
  const env = await testEnv({
    kinds: withoutValidation ? kinds.map((kind) => ({ ...kind, validate: () => [] })) : kinds,
    controllers: [
      createMachineSetController(),
      createMachineDeploymentController(runtime ? { runtime } : {}),
      createMachineStandIn(machineDelay),
    ] as unknown as Controller[],
    ...envOptions,
    between: (transport) => abortable(between(transport)),
  })
  return {
    ...env,
    async counts() {
      const { items: sets } = await env.client.list(MachineSet, { namespace: 'default' })
      return sets
        .toSorted((a, b) => a.metadata.creationTimestamp.localeCompare(b.metadata.creationTimestamp))
        .map(
          ({ spec, status }) =>
            `${spec.template.spec.version} ${status?.replicas ?? 0}/${spec.replicas}, ${status?.availableReplicas ?? 0} available`,
        )
        .join('; ')
    },
  }
}

const infrastructureRef = (name: string) => ({ apiGroup: 'infra.test', kind: 'DevMachineTemplate', name })
const configRef = (name: string) => ({ apiGroup: 'bootstrap.test', kind: 'DevConfigTemplate', name })

export async function createClusterWithTemplates({ client }: TestEnv): Promise<void> {
  await client.create(Cluster, {
    metadata: { name: 'demo', namespace: 'default' },
    spec: { infrastructureRef: infrastructureRef('unused') },
  })
  const labelled = { template: { metadata: { labels: { 'from-template': 'yes' } }, spec: { size: 'small' } } }
  await client.create(DevMachineTemplate, { metadata: { name: 'infra', namespace: 'default' }, spec: labelled })
  await client.create(DevConfigTemplate, {
    metadata: { name: 'bootstrap', namespace: 'default' },
    spec: { template: { spec: {} } },
  })
}

const machineTemplate = (version: string) => ({
  metadata: { labels: { app: 'demo' } },
  spec: {
    clusterName: 'demo',
    version,
    bootstrap: { configRef: configRef('bootstrap') },
    infrastructureRef: infrastructureRef('infra'),
  },
})

export const aMachineDeployment = (overrides: Partial<MachineDeployment['spec']> = {}) => ({
  metadata: { name: 'workers', namespace: 'default' },
  spec: {
    clusterName: 'demo',
    replicas: 3,
    selector: { matchLabels: { app: 'demo' } },
    rollout: { strategy: { type: 'RollingUpdate' as const, rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } },
    template: machineTemplate('v1.34.0'),
    ...overrides,
  },
})

export const aMachineSet = (overrides: Partial<MachineSet['spec']> = {}) => ({
  metadata: { name: 'set', namespace: 'default' },
  spec: {
    clusterName: 'demo',
    replicas: 2,
    selector: { matchLabels: { app: 'demo' } },
    template: machineTemplate('v1.34.0'),
    ...overrides,
  },
})

export const conditionText = (object: {
  status?: { conditions?: { type: string; status: string; reason: string; message: string }[] }
}): string[] =>
  (object.status?.conditions ?? []).map(
    ({ type, status, reason, message }) => `${type} ${status} ${reason}${message ? `: ${message}` : ''}`,
  )
