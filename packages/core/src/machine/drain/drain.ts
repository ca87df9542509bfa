import { type Client, DaemonSet, isReason, keyText, Node, orAbsent, Pod, type StatusError } from '@capstan/kube'
import { type DrainPlan, drainProgress, type FailedEviction, planDrain } from './plan.ts'

export interface DrainOptions {
  readonly startedAt: string
  readonly now: number
  readonly signal: AbortSignal
}

/**
 * Brings the drain of a Node one step on: no new Pods come, and those that are there are asked to leave. Gives back what is
 * still to be waited for, in words; `undefined` when the Node is empty of what had to go.
 */
export async function drainNode(
  client: Client,
  node: Node,
  { startedAt, now, signal }: DrainOptions,
): Promise<string | undefined> {
  const { name } = node.metadata
  if (!node.spec?.unschedulable) {
    await client.patch(Node, { name }, { type: 'merge', body: { spec: { unschedulable: true } } }, { signal })
  }
  const isNodeUnreachable = isUnreachable(node)
  const plan = await observe()
  const failed: FailedEviction[] = []
  for (const pod of plan.evict) {
    const message = await evict(client, pod, isNodeUnreachable ? 1 : undefined, signal)
    if (message !== undefined) failed.push({ pod, message })
  }
  // What had no grace period to wait for is gone by now.
  const { leaving, completing } = plan.evict.length > failed.length ? await observe() : plan
  return drainProgress({ leaving, completing }, failed, startedAt)

  async function observe(): Promise<DrainPlan> {
    const { items: pods } = await client.list(Pod, { fieldSelector: `spec.nodeName=${name}`, signal })
    const daemonSets = await existingDaemonSets(client, pods, signal)
    return planDrain({ pods, isNodeUnreachable, now, daemonSetExists: (key) => daemonSets.has(key) })
  }
}

/** Asks a Pod to leave. Gives back why it does not; `undefined` when it does, or is gone. */
async function evict(
  { transport }: Client,
  { metadata: { name, namespace } }: Pod,
  gracePeriodSeconds: number | undefined,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    await transport.send(
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
          ...(gracePeriodSeconds === undefined ? {} : { deleteOptions: { gracePeriodSeconds } }),
        },
      },
      signal,
    )
    return undefined
  } catch (err) {
    if (isReason(err, 'NotFound')) return undefined
    if (isReason(err, 'TooManyRequests')) return refused(err)
    const message = isNamespaceTerminating(err) ? TerminatingNamespace : (err as Error).message
    return `failed to evict Pod, ${message}`
  }
}

/** A disruption budget says no, and perhaps why. */
const refused = ({ message, details }: StatusError): string => {
  const causes = details?.causes?.flatMap((cause) => (cause.message ? [cause.message] : [])) ?? []
  const text = message.replace(/^Cannot evict/, 'cannot evict').replace(/\.$/, '')
  return [text, ...causes].join('. ')
}

const isNamespaceTerminating = (err: unknown): boolean =>
  isReason(err, 'Forbidden') && (err.details?.causes?.some(({ reason }) => reason === 'NamespaceTerminating') ?? false)

const TerminatingNamespace =
  'Cannot evict pod from terminating namespace: unable to create eviction (kube-controller-manager should set deletionTimestamp)'

/** DaemonSets of these Pods that exist, as `namespace/name`. */
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

/** The kubelet of the Node does not report any more. */
export const isUnreachable = (node: Node): boolean =>
  (node.spec?.taints?.some(({ key }) => key === 'node.kubernetes.io/unreachable') ?? false) ||
  (node.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'Unknown') ?? false)
