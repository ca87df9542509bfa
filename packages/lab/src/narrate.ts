/**
 * Describes changes of Clusters, Machines, worker counts, ClusterClasses and ExtensionConfigs as readable lines. The lines depend
 * only on the changes and the clock, so that tests can compare the lines that `capstan up` prints.
 */
import type { Cluster, ClusterClass, ExtensionConfig, Machine, MachineDeployment, MachinePool } from '@capstan/api'
import type { Clock, Condition, KubeObject } from '@capstan/kube'
import { appendAll, isDeleting } from '@capstan/kube'

/** One relevant change. */
export interface Line {
  /** The object, such as `Cluster default/demo`, or the part of the program, such as `API server`. */
  readonly subject: string
  /** The change or the new state, without the subject. */
  readonly text: string
  /** The kind of change, for programs. */
  readonly event: string
  /** The Cluster that the change concerns, `namespace/name`. */
  readonly cluster?: string
  /** A command that the user can run. */
  readonly command?: string
}

/** A change of one object, as reported by a watch. */
export interface ObjectChange {
  readonly kind: string
  readonly previous: KubeObject | undefined
  readonly object: KubeObject | undefined
}

/** Returns the lines that describe a change; there may be none. */
export type LineFormatter = (change: ObjectChange) => Line[]

export function createLineFormatter(clock: Clock): LineFormatter {
  /**
   * Times, by uid, at which Clusters that are not yet Available were first reported. Timestamps of objects are in whole seconds, which is
   * too coarse for Clusters that become Available within a second.
   */
  const unavailableSince = new Map<string, number>()
  return ({ kind, previous, object }) => {
    switch (kind) {
      case 'Cluster':
        return aboutCluster(previous as Cluster | undefined, object as Cluster | undefined, unavailableSince, clock.now())
      case 'Machine':
        return aboutMachine(previous as Machine | undefined, object as Machine | undefined)
      case 'MachineDeployment':
      case 'MachinePool':
        return aboutReplicas(kind, previous as Replicated | undefined, object as Replicated | undefined)
      case 'ClusterClass':
        return aboutClusterClass(previous as ClusterClass | undefined, object as ClusterClass | undefined)
      case 'ExtensionConfig':
        return aboutExtensionConfig(previous as ExtensionConfig | undefined, object as ExtensionConfig | undefined)
      default:
        return []
    }
  }
}

function aboutCluster(
  previous: Cluster | undefined,
  object: Cluster | undefined,
  unavailableSince: Map<string, number>,
  now: number,
): Line[] {
  const { uid } = (object ?? previous)!.metadata
  const subject = subjectOf('Cluster', previous, object)
  const cluster = subject.slice('Cluster '.length)
  const line = (event: string, text: string): Line => ({ subject, event, text, cluster })
  if (!object) {
    unavailableSince.delete(uid)
    return [line('ClusterDeleted', 'deleted')]
  }
  const lines: Line[] = []
  const { topology } = object.spec
  const isAvailable = conditionOf(object, 'Available')?.status === 'True'
  if (!previous) {
    if (!isAvailable) unavailableSince.set(uid, now)
    lines.push(line('ClusterCreated', `${isAvailable ? 'found' : 'created'}${shapeOf(object)}`))
  }
  if (previous && !isDeleting(previous) && isDeleting(object)) lines.push(line('ClusterDeleting', 'deletion requested'))
  const from = previous?.spec.topology?.version
  if (from && topology && topology.version !== from)
    lines.push(line('UpgradeAsked', `upgrade from ${from} to ${topology.version} requested`))

  const was = previous?.status?.initialization
  const is = object.status?.initialization
  if (is?.infrastructureProvisioned && !was?.infrastructureProvisioned) {
    const endpoint = object.spec.controlPlaneEndpoint
    const endpointText = endpoint?.host ? `, endpoint ${endpoint.host}:${endpoint.port}` : ''
    lines.push(line('InfrastructureProvisioned', `infrastructure provisioned${endpointText}`))
  }
  if (is?.controlPlaneInitialized && !was?.controlPlaneInitialized)
    lines.push(line('ControlPlaneInitialized', 'control plane initialized'))
  appendAll(lines, aboutTopology(previous, object, line))

  if (isAvailable && conditionOf(previous, 'Available')?.status !== 'True' && !isDeleting(object)) {
    const since = unavailableSince.get(uid)
    unavailableSince.delete(uid)
    lines.push(
      line('ClusterAvailable', since === undefined ? 'Available' : `Available after ${((now - since) / 1000).toFixed(1)} s`),
    )
  }
  return lines
}

/**
 * Reports a failed topology reconcile and a completed upgrade. `lineOf` of `hook-calls.ts` reports hooks that block, and `aboutMachine` reports
 * Machines.
 */
function aboutTopology(previous: Cluster | undefined, object: Cluster, line: (event: string, text: string) => Line): Line[] {
  const was = conditionOf(previous, 'TopologyReconciled')
  const is = conditionOf(object, 'TopologyReconciled')
  if (!is) return []
  const isProblem = is.reason === 'ReconcileFailed' || is.reason === 'ClusterClassNotReconciled'
  if (isProblem && is.message !== was?.message) return [line('TopologyNotReconciled', `topology not reconciled: ${is.message}`)]
  if (was?.reason === 'ClusterUpgrading' && is.status === 'True')
    return [line('UpgradeCompleted', `upgraded to ${object.spec.topology?.version}`)]
  return []
}

/** Formats Machine counts and version of the topology in parentheses; empty for a Cluster without topology. */
function shapeOf({ spec: { topology } }: Cluster): string {
  if (!topology) return ''
  const { machineDeployments = [], machinePools = [] } = topology.workers ?? {}
  const workers = sum([...machineDeployments, ...machinePools], ({ replicas }) => replicas ?? 1)
  return ` (${count(topology.controlPlane?.replicas ?? 1, 'control plane machine')}, ${count(workers, 'worker')}, Kubernetes ${topology.version})`
}

function aboutMachine(previous: Machine | undefined, object: Machine | undefined): Line[] {
  const subject = subjectOf('Machine', previous, object)
  const machine = (object ?? previous)!
  const cluster = `${machine.metadata.namespace}/${machine.spec.clusterName}`
  const line = (event: string, text: string): Line => ({ subject, event, text, cluster })
  if (!object) return [line('MachineDeleted', 'deleted')]
  const phase = object.status?.phase
  if (phase === undefined || phase === previous?.status?.phase) return []
  // The MachinePool controller copies the kubelet's version to spec.version of its Machines. A Machine can be Running before this write.
  const version = object.spec.version ?? object.status?.nodeInfo?.kubeletVersion ?? 'unknown'
  const details = phase === 'Running' ? ` (Node ${object.status?.nodeRef?.name}, Kubernetes ${version})` : ''
  return [line(`Machine${phase}`, `${phase}${details}`)]
}

type Replicated = MachineDeployment | MachinePool

function aboutReplicas(kind: string, previous: Replicated | undefined, object: Replicated | undefined): Line[] {
  if (!previous || !object || previous.spec.replicas === object.spec.replicas || previous.spec.replicas === undefined) return []
  const cluster = `${object.metadata.namespace}/${object.spec.clusterName}`
  const text = `scaling from ${previous.spec.replicas} to ${object.spec.replicas}`
  return [{ subject: subjectOf(kind, previous, object), event: 'Scaling', text, cluster }]
}

function aboutClusterClass(previous: ClusterClass | undefined, object: ClusterClass | undefined): Line[] {
  const is = conditionOf(object, 'VariablesReady')
  if (!object || !is || is.status === conditionOf(previous, 'VariablesReady')?.status) return []
  const accepted = is.status === 'True'
  return [
    {
      subject: subjectOf('ClusterClass', previous, object),
      event: accepted ? 'ClusterClassAccepted' : 'ClusterClassRefused',
      text: accepted ? 'accepted' : `not accepted: ${is.message}`,
    },
  ]
}

function aboutExtensionConfig(previous: ExtensionConfig | undefined, object: ExtensionConfig | undefined): Line[] {
  const is = conditionOf(object, 'Discovered')
  const was = conditionOf(previous, 'Discovered')
  if (!object || !is) return []
  const discovered = is.status === 'True'
  const handlers = handlersOf(object)
  const isKnown = is.status === was?.status && is.message === was.message
  if (isKnown && (!discovered || handlers.join() === handlersOf(previous).join())) return []
  return [
    {
      subject: `ExtensionConfig ${object.metadata.name}`,
      event: discovered ? 'ExtensionDiscovered' : 'ExtensionNotDiscovered',
      text: discovered ? `discovered, handlers: ${handlers.join(', ')}` : `not discovered: ${is.message}`,
    },
  ]
}

const handlersOf = (config: ExtensionConfig | undefined): string[] =>
  (config?.status?.handlers ?? []).map(({ name }) => name.slice(0, -config!.metadata.name.length - 1))

const subjectOf = (kind: string, previous: KubeObject | undefined, object: KubeObject | undefined): string => {
  const { namespace, name } = (object ?? previous)!.metadata
  return `${kind} ${namespace}/${name}`
}
const conditionOf = (object: { status?: { conditions?: Condition[] } } | undefined, type: string): Condition | undefined =>
  object?.status?.conditions?.find((condition) => condition.type === type)
const count = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? '' : 's'}`
const sum = <T>(items: readonly T[], valueOf: (item: T) => number): number =>
  items.reduce((total, item) => total + valueOf(item), 0)
