/** Drains Nodes of workload clusters. Upstream: core/reconcilers/machine/drain/drain.go, v1.14. */
import type { Cluster, Machine, MachineDrainRule } from '@capstan/api'
import {
  type Client,
  type Clock,
  DaemonSet,
  isReason,
  keyText,
  Namespace,
  Node,
  orAbsent,
  Pod,
  seconds,
  type StatusError,
  withErrorContext,
} from '@capstan/kube'
import { deadline } from '../../cluster-cache/deadline.ts'
import { listPages } from '../list-pages.ts'
import { classifyPods, planDrain, type PodDrain } from './plan.ts'
import { type DrainResult, drainProgress, type FailedEviction } from './progress.ts'
import { rulesForMachine } from './rules.ts'

/** Inputs for the drain of one Node. */
export interface DrainTarget {
  /** Client of the workload cluster. */
  readonly client: Client
  readonly node: Node
  readonly machine: Machine
  readonly cluster: Cluster
  /** All rules in the namespace of the Machine. */
  readonly rules: readonly MachineDrainRule[]
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** Time for sending evictions in one reconcile; the next reconcile continues. */
const EvictionTimeout = seconds(10)

/**
 * Cordons the Node. Evicts those Pods of the lowest drain order that must be evicted; Pods of a higher order follow in later reconciles.
 * Returns a condition message with the Pods that the drain still waits for; `undefined` when the drain is complete.
 *
 * @param startedAt time at which the drain began, for the message
 */
export async function drainNode(target: DrainTarget, startedAt: string): Promise<string | undefined> {
  const { client, node, signal } = target
  const { name } = node.metadata
  if (!node.spec?.unschedulable) {
    const body = { spec: { unschedulable: true } }
    await withErrorContext(`failed to cordon Node ${name}: failed to cordon Node`, () =>
      client.patch(Node, { name }, { type: 'merge', body }, { signal }),
    )
  }
  const plan = planDrain(await podsToDrain(target, { isNodeUnreachable: isUnreachable(node) }))
  const { evicted, failed } = await evictAll(plan.evict, target)
  return drainProgress({ ...plan, deleting: [...plan.deleting, ...evicted], failed }, startedAt)
}

/**
 * Decides for each Pod on the Node whether and when it is drained.
 *
 * @param isNodeUnreachable whether to skip Pods that the kubelet should have ended by now
 */
export function podsToDrain(
  { client, node, machine, cluster, rules, clock, signal }: DrainTarget,
  { isNodeUnreachable }: { readonly isNodeUnreachable: boolean },
): Promise<PodDrain[]> {
  return withErrorContext('failed to get Pods for eviction', async () => {
    const pods = await listPages(client, Pod, { fieldSelector: `spec.nodeName=${node.metadata.name}`, signal })
    if (pods.length === 0) return []
    const applicable = rulesForMachine(rules, machine, cluster)
    const namespaces = await withErrorContext('failed to list Namespaces', () =>
      listPages(client, Namespace, { metadataOnly: true, signal }),
    )
    const labelsByNamespace = new Map(namespaces.map(({ metadata }) => [metadata.name, metadata.labels ?? {}]))
    const daemonSets = await existingDaemonSets(client, pods, signal)
    return classifyPods({
      pods,
      rules: applicable,
      namespaceLabels: (name) => labelsByNamespace.get(name),
      daemonSetExists: (key) => daemonSets.has(key),
      isNodeUnreachable,
      now: clock.now(),
    })
  })
}

async function evictAll(
  pods: readonly Pod[],
  { client, node, clock, signal }: DrainTarget,
): Promise<{ evicted: Pod[]; failed: DrainResult['failed'] }> {
  const evicted: Pod[] = []
  const failed: FailedEviction[] = []
  const end = clock.elapsed() + EvictionTimeout
  const gracePeriodSeconds = isUnreachable(node) ? 1 : undefined
  for (const pod of pods) {
    const remaining = end - clock.elapsed()
    try {
      if (remaining <= 0) throw new Error(TimeoutReached)
      await deadline(clock, remaining, 'eviction', signal, (inner) => evict(client, pod, gracePeriodSeconds, inner))
      evicted.push(pod)
    } catch (err) {
      if (signal.aborted) throw err
      if (isReason(err, 'NotFound')) continue
      failed.push({ pod, message: clock.elapsed() >= end ? TimeoutReached : evictionFailure(err as Error) })
    }
  }
  return { evicted, failed }
}

const TimeoutReached = `eviction timeout of ${EvictionTimeout / seconds(1)}s reached, eviction will be retried`

const evict = (
  { transport }: Client,
  { metadata: { name, namespace } }: Pod,
  gracePeriodSeconds: number | undefined,
  signal: AbortSignal,
): Promise<unknown> =>
  transport.send(
    {
      verb: 'create',
      group: '',
      version: 'v1',
      plural: 'pods',
      namespace: namespace!,
      name,
      subresource: 'eviction',
      body: {
        apiVersion: 'policy/v1',
        kind: 'Eviction',
        metadata: { name, namespace },
        deleteOptions: gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds },
      },
    },
    signal,
  )

function evictionFailure(err: Error): string {
  if (isReason(err, 'TooManyRequests')) return textWithCauses(err)
  return isNamespaceTerminating(err) ? TerminatingNamespace : err.message
}

/** Returns the message of an error with its causes. Only a cause names the PodDisruptionBudget that forbids the eviction. */
const textWithCauses = ({ message, details }: StatusError): string =>
  details ? `${message} ${(details.causes ?? []).map((cause) => cause.message ?? '').join(',')}` : message

const isNamespaceTerminating = (err: unknown): boolean =>
  isReason(err, 'Forbidden') && (err.details?.causes?.some(({ reason }) => reason === 'NamespaceTerminating') ?? false)

const TerminatingNamespace =
  'Cannot evict pod from terminating namespace: unable to create eviction (kube-controller-manager should set deletionTimestamp)'

/** Returns the existing DaemonSets that control the Pods, as `namespace/name`. */
async function existingDaemonSets(client: Client, pods: readonly Pod[], signal: AbortSignal): Promise<Set<string>> {
  const keys = new Map<string, { namespace: string; name: string }>()
  for (const { metadata } of pods) {
    for (const { kind, name, controller } of metadata.ownerReferences ?? []) {
      const key = { namespace: metadata.namespace!, name }
      if (controller && kind === DaemonSet.kind) keys.set(keyText(key), key)
    }
  }
  const existing = new Set<string>()
  for (const [text, key] of keys) if (await orAbsent(client.get(DaemonSet, key, { signal }))) existing.add(text)
  return existing
}

/** Whether the kubelet of the Node stopped reporting. */
export const isUnreachable = (node: Node): boolean =>
  node.status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'Unknown'
