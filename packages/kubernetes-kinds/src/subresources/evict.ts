/**
 * POST pods/x/eviction: deletes the pod, unless a PodDisruptionBudget forbids it. Upstream: pkg/registry/core/pod/storage/eviction.go,
 * v1.36.
 */
import {
  badRequest,
  draft,
  isReason,
  isRecord,
  type KubeObject,
  type Status,
  StatusError,
  timestamp,
  type UnknownObject,
} from '@capstan/kube'
import { usableSelector } from '../kinds/pod-names.ts'
import type { Pod, PodCondition, PodDisruptionBudget } from '../kinds/schemas/types.ts'
import {
  mutateWebhooks,
  validateWebhooks,
  checkPreconditions,
  type Deletion,
  deletionOf,
  removeNamed,
  requireNamespace,
  modify,
  type RequestContext,
  keyFor,
  type ServerContext,
  stored,
  schemeName,
} from '@capstan/apiserver/kinds'
import { isReady, needsBudget, allowsUnreadyEviction, budgetNotObserved, countDisruption } from './disruption.ts'

export async function evict(server: ServerContext, context: RequestContext): Promise<Status> {
  const { info, request, options } = context
  const { name, namespace } = request
  requireNamespace(server, info, { metadata: { name: name!, namespace: namespace! } } as KubeObject)
  const eviction = evictionOf(context)
  await callEvictionWebhooks(server, context, eviction)

  const pod = stored(server, info, keyFor(info, namespace, name!)) as unknown as Pod
  const { deleteOptions } = eviction
  const dryRun = options.dryRun === true || (isRecord(deleteOptions) && Array.isArray(deleteOptions.dryRun))
  const evictionContext: RequestContext = { ...context, options: { ...options, dryRun } }
  const uncountedBudget = needsBudget(pod) ? await countInBudget(server, evictionContext, pod) : undefined

  const deletion = deletionOf(deleteOptions)
  // If the eviction is not counted because the pod is not ready, the pod must not change before its deletion.
  const mustBeUnchanged = uncountedBudget !== undefined && deletion.preconditions?.resourceVersion === undefined
  const { resourceVersion } = pod.metadata
  try {
    await removePod(
      server,
      evictionContext,
      mustBeUnchanged ? { ...deletion, preconditions: { ...deletion.preconditions, resourceVersion } } : deletion,
    )
  } catch (err) {
    if (mustBeUnchanged && isReason(err, 'Conflict')) throw budgetNotObserved(uncountedBudget)
    throw err
  }
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 }
}

function evictionOf({ request: { body, name } }: RequestContext): Record<string, unknown> {
  const eviction = isRecord(body) ? body : {}
  const { apiVersion = 'policy/v1', kind = 'Eviction', metadata } = eviction
  if (kind !== 'Eviction' || (apiVersion !== 'policy/v1' && apiVersion !== 'policy/v1beta1')) {
    const [sentKind, version] = [String(kind), String(apiVersion)]
    throw badRequest(
      `${sentKind} in version ${JSON.stringify(version.split('/').at(-1))} cannot be handled as a Eviction: no kind ${JSON.stringify(sentKind)} is registered for version ${JSON.stringify(version)} in scheme "${schemeName}"`,
    )
  }
  if (isRecord(metadata) && metadata.name === name) return eviction
  throw badRequest('name in URL does not match name in Eviction object')
}

/** Calls webhooks with the Eviction. The deletion that follows does not call webhooks again. */
async function callEvictionWebhooks(
  server: ServerContext,
  context: RequestContext,
  eviction: Record<string, unknown>,
): Promise<void> {
  const { name, namespace } = context.request
  const metadata = { ...(isRecord(eviction.metadata) ? eviction.metadata : {}), name, namespace }
  const object = { kind: 'Eviction', apiVersion: 'policy/v1', ...eviction, metadata } as unknown as UnknownObject
  const view = {
    kind: { group: 'policy', version: 'v1', kind: 'Eviction' },
    fromObject: (object: UnknownObject) => object,
    applyTo() {},
  }
  await mutateWebhooks(server, context, 'CREATE', object, undefined, view)
  await validateWebhooks(server, context, 'CREATE', object, undefined, view)
}

/**
 * Counts the eviction in the budget of the pod. If the pod is not ready, and the budget allows the eviction of such pods, returns the name of
 * the budget instead.
 * @throws StatusError when the pod has several budgets, and the errors of `countDisruption`
 */
async function countInBudget(server: ServerContext, context: RequestContext, pod: Pod): Promise<string | undefined> {
  const { namespace, labels, name } = pod.metadata
  const budgets = server.store
    .list('poddisruptionbudgets.policy', namespace)
    .map((object) => object as unknown as PodDisruptionBudget)
    .filter(({ spec: { selector } }) => usableSelector(selector)?.matches(labels) === true)
  if (budgets.length > 1) {
    throw new StatusError('', 'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.')
  }
  const [budget] = budgets
  if (!budget) return undefined
  if (!isReady(pod) && allowsUnreadyEviction(budget)) return budget.metadata.name
  const info = server.registry.find('policy', 'v1', 'poddisruptionbudgets')!
  await writeStatus(server, { ...context, info }, budget.metadata.name, (current) =>
    countDisruption(current as unknown as PodDisruptionBudget, name, timestamp(server.clock.now())),
  )
  return undefined
}

/** Writes the condition DisruptionTarget into the pod's status, except in a dry run, and deletes the pod. */
async function removePod(server: ServerContext, context: RequestContext, deletion: Deletion): Promise<void> {
  const { info, options, request } = context
  const { namespace, name } = request
  let { preconditions } = deletion
  if (!options.dryRun) {
    const podWithCondition = await writeStatus(server, context, name!, (current) => {
      checkPreconditions(info, current, deletion)
      addCondition(current as unknown as Pod, timestamp(server.clock.now()))
    })
    // The status write of this request changed the resourceVersion.
    if (preconditions?.resourceVersion !== undefined) {
      preconditions = { ...preconditions, resourceVersion: podWithCondition.metadata.resourceVersion! }
    }
  }
  await removeNamed(server, context, namespace, name!, { ...deletion, ...(preconditions ? { preconditions } : {}) })
}

function addCondition({ status }: Pod, now: string): void {
  const otherConditions = (status.conditions ?? []).filter(({ type }) => type !== 'DisruptionTarget')
  const condition: PodCondition = {
    type: 'DisruptionTarget',
    status: 'True',
    lastTransitionTime: now,
    reason: 'EvictionByEvictionAPI',
    message: 'Eviction API: evicting',
  }
  status.conditions = [...otherConditions, condition]
}

/** Changes the status of an object by an internal write, which is repeated after conflicts with concurrent writes. */
const writeStatus = (
  server: ServerContext,
  { info, request: { namespace }, options: { dryRun = false }, ended }: RequestContext,
  name: string,
  change: (current: UnknownObject) => void,
): Promise<KubeObject> =>
  modify(
    server,
    {
      info,
      request: {
        group: info.group,
        version: info.version,
        plural: info.plural,
        verb: 'update',
        subresource: 'status',
        namespace: namespace!,
        name,
      },
      options: { dryRun },
      caller: { name: 'system:apiserver', groups: ['system:masters'], agent: 'kube-apiserver' },
      warnings: [],
      ended,
      isInternal: true,
    },
    {
      replaces: false,
      apply(current) {
        const object = draft(current)
        change(object)
        return object
      },
    },
  )
