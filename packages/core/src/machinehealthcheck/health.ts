/** Determines whether a Machine is healthy. Pure. Upstream: machinehealthcheck_targets.go, v1.14. */
import {
  type Cluster,
  ClusterConditions,
  DefaultNodeStartupTimeoutSeconds,
  type Machine,
  MachineConditions,
  MachineControlPlaneLabel,
  type MachineHealthCheck,
  RemediateMachineAnnotation,
} from '@capstan/api'
import {
  durationText,
  getCondition,
  isDeleting,
  isTrue,
  legacyFalse,
  legacyTrue,
  type NewCondition,
  type NewLegacyCondition,
  type Node,
  seconds,
} from '@capstan/kube'

/** A Machine that a MachineHealthCheck selects, with its Node. */
export interface Target {
  readonly machine: Machine
  /**
   * State `none`: the Machine has no Node yet, or the control plane of its Cluster is not initialized. State `deleted`: the Machine's Node
   * was deleted.
   */
  readonly node:
    | { readonly state: 'none' }
    | { readonly state: 'deleted'; readonly name: string }
    | { readonly state: 'found'; readonly node: Node }
}

/** Health of a Machine, with the conditions that report it in the v1beta2 and v1beta1 form. */
export type Health =
  | { readonly kind: 'unhealthy' | 'healthy'; readonly condition: NewCondition; readonly legacy: NewLegacyCondition }
  /** The Machine may become unhealthy without a further watch event. Its health must be determined again after `after` milliseconds. */
  | { readonly kind: 'pending'; readonly after: number }
  /** The health of the Machine cannot be determined. */
  | { readonly kind: 'unknown' }

const HealthCheckSucceeded = MachineConditions.HealthCheckSucceeded
const legacyType = HealthCheckSucceeded.type

/** Determines the health of a Machine at the time `now`, in milliseconds since the Unix epoch. */
export function healthOf(target: Target, healthCheck: MachineHealthCheck, cluster: Cluster, now: number): Health {
  const { machine } = target
  if (machine.metadata.annotations?.[RemediateMachineAnnotation] !== undefined) {
    const message = 'Health check failed: marked for remediation via cluster.x-k8s.io/remediate-machine annotation'
    const legacyMessage = 'Marked for remediation via remediate-machine annotation'
    return {
      kind: 'unhealthy',
      condition: HealthCheckSucceeded.false('HasRemediateAnnotation', message),
      legacy: legacyFalse(legacyType, 'HasRemediateMachineAnnotation', 'Warning', legacyMessage),
    }
  }
  // As upstream, a Machine whose health is not evaluated counts as healthy when it has a Node and is not being deleted.
  if (!isEvaluated(machine, cluster)) return healthyWithNode(target)

  const problemsOfMachine = conditionProblems('Machine', healthCheck.spec.checks?.unhealthyMachineConditions, now, (type) =>
    getCondition(machine, type),
  )
  const problemsOfNode = nodeProblems(target, healthCheck, cluster, now)
  const messages = [...problemsOfMachine.messages, ...problemsOfNode.messages]
  if (messages.length > 0)
    return unhealthy(problemsOfMachine.messages.length > 0 ? 'UnhealthyMachine' : problemsOfNode.reason, messages)

  const recheckAfter = Math.min(problemsOfMachine.after, problemsOfNode.after)
  if (recheckAfter !== Infinity) return { kind: 'pending', after: recheckAfter }
  return healthyWithNode(target)
}

function healthyWithNode({ machine, node }: Target): Health {
  if (isDeleting(machine) || node.state !== 'found') return { kind: 'unknown' }
  return { kind: 'healthy', condition: HealthCheckSucceeded.true('HealthCheckSucceeded'), legacy: legacyTrue(legacyType) }
}

/**
 * Returns whether the health of a Machine is evaluated. No Machine is evaluated before the infrastructure of the Cluster is ready, and no
 * worker before the control plane is initialized. Control plane Machines are evaluated, and can be remediated, before the control plane is
 * initialized.
 */
function isEvaluated({ metadata }: Machine, cluster: Cluster): boolean {
  const isControlPlane = metadata.labels?.[MachineControlPlaneLabel] !== undefined
  const isInitialized = isTrue(cluster, ClusterConditions.ControlPlaneInitialized.type)
  return (isInitialized || isControlPlane) && isTrue(cluster, ClusterConditions.InfrastructureReady.type)
}

type Reason = 'UnhealthyMachine' | 'UnhealthyNode' | 'NodeDeleted' | 'NodeStartupTimeout'

function unhealthy(reason: Reason, messages: readonly string[]): Health {
  // As upstream, in v1beta1 conditions a deleted Node has another reason and no message.
  const legacy =
    reason === 'NodeDeleted'
      ? legacyFalse(legacyType, 'NodeNotFound', 'Warning')
      : legacyFalse(legacyType, reason, 'Warning', messages.join('; '))
  const message = `Health check failed:\n${messages.map((text) => `  * ${text}`).join('\n')}`
  return { kind: 'unhealthy', condition: HealthCheckSucceeded.false(reason, message), legacy }
}

interface Problems {
  readonly messages: readonly string[]
  /** Milliseconds after which the next problem may have occurred; Infinity when none is expected. */
  readonly after: number
}

interface NodeProblems extends Problems {
  readonly reason: Reason
}

function nodeProblems({ machine, node }: Target, { spec }: MachineHealthCheck, cluster: Cluster, now: number): NodeProblems {
  switch (node.state) {
    case 'deleted': {
      const reason = 'NodeDeleted'
      const timeLeft = isDeleting(machine) ? deletionTimeLeft(machine, now) : 0
      if (timeLeft > 0) return { reason, messages: [], after: timeLeft }
      return { reason, messages: [`Node ${node.name} has been deleted`], after: Infinity }
    }
    case 'none':
      return startupProblem(machine, spec.checks?.nodeStartupTimeoutSeconds, cluster, now)
    case 'found': {
      const conditions = node.node.status?.conditions ?? []
      const find = (type: string) => conditions.find((condition) => condition.type === type)
      return {
        reason: 'UnhealthyNode',
        ...conditionProblems('Node', spec.checks?.unhealthyNodeConditions, now, find),
      }
    }
  }
}

/**
 * Time for which a Machine that is being deleted may exist without its Node. Usually the Machine controller has deleted the Node, and removes
 * the Machine's finalizer next. Upstream has no such time, but reconciles a MachineHealthCheck at most once in 15 seconds.
 */
const TimeWithoutNode = seconds(15)

/**
 * Returns the milliseconds until a Machine that is being deleted becomes unhealthy because its Node was deleted. If its condition NodeReady
 * has the reason NodeDeleted, the Machine becomes unhealthy `TimeWithoutNode` after this condition became False, which may have happened
 * before the deletion of the Node. Without this reason, returns `TimeWithoutNode`. Zero or less when the Machine is unhealthy.
 */
function deletionTimeLeft(machine: Machine, now: number): number {
  const nodeReady = getCondition(machine, MachineConditions.NodeReady.type)
  const since = nodeReady?.reason === 'NodeDeleted' ? Date.parse(nodeReady.lastTransitionTime ?? '') || 0 : now
  return since + TimeWithoutNode - now
}

function startupProblem(
  machine: Machine,
  timeoutSeconds: number | undefined = DefaultNodeStartupTimeoutSeconds,
  cluster: Cluster,
  now: number,
): NodeProblems {
  const reason = 'NodeStartupTimeout'
  if (timeoutSeconds === 0) return { reason, messages: [], after: Infinity }
  const timeout = seconds(timeoutSeconds)
  const since = Math.max(
    Date.parse(machine.metadata.creationTimestamp),
    trueSince(getCondition(cluster, ClusterConditions.ControlPlaneInitialized.type)),
    trueSince(getCondition(cluster, ClusterConditions.InfrastructureReady.type)),
    trueSince(getCondition(machine, MachineConditions.InfrastructureReady.type)),
  )
  if (since + timeout < now) {
    return { reason, messages: [`Node failed to report startup in ${durationText(timeout)}`], after: Infinity }
  }
  return { reason, messages: [], after: Math.min(since + timeout - now, timeout) + seconds(1) }
}

const trueSince = (condition: FoundCondition | undefined): number =>
  condition?.status === 'True' ? Date.parse(condition.lastTransitionTime ?? '') || 0 : 0

interface UnhealthyCondition {
  readonly type: string
  readonly status: string
  readonly timeoutSeconds: number
}

interface FoundCondition {
  readonly status: string
  readonly reason?: string
  readonly lastTransitionTime?: string | null
}

/**
 * Finds the conditions whose unhealthy status has lasted longer than the timeout of the rule, and the time after which the next condition
 * will have exceeded its timeout.
 */
function conditionProblems(
  on: 'Machine' | 'Node',
  rules: readonly UnhealthyCondition[] | undefined,
  now: number,
  find: (type: string) => FoundCondition | undefined,
): Problems {
  const messages: string[] = []
  let recheckAfter = Infinity
  for (const { type, status, timeoutSeconds } of rules ?? []) {
    const condition = find(type)
    if (condition?.status !== status) continue
    const deadline = (Date.parse(condition.lastTransitionTime ?? '') || 0) + seconds(timeoutSeconds)
    if (deadline < now) {
      const reportedText = `reporting status ${status} with reason ${condition.reason ?? ''}`
      messages.push(`Condition ${type} on ${on} is ${reportedText} for more than ${durationText(seconds(timeoutSeconds))}`)
    } else {
      recheckAfter = Math.min(recheckAfter, Math.min(deadline - now, seconds(timeoutSeconds)) + seconds(1))
    }
  }
  return { messages, after: recheckAfter }
}
