/** POST pods/x/eviction: deletes the pod, unless a disruption budget is in the way. Upstream: pkg/registry/core/pod/storage/eviction.go, v1.36. */
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
import { mutateWebhooks, validateWebhooks } from './ask-webhooks.ts'
import { checkPreconditions, type Deletion, deletionOf, removeNamed } from './delete.ts'
import { isReady, needsBudget, sparesUnready, stillProcessed, takeDisruption } from './disruption.ts'
import { modify } from './modify.ts'
import { type Call, keyFor, type Plane, stored } from './plane.ts'
import { schemeName } from './refusal.ts'

export async function evict(plane: Plane, call: Call): Promise<Status> {
  const { definition, request, options } = call
  const eviction = evictionOf(call)
  await announceEviction(plane, call, eviction)

  const pod = stored(plane, definition, keyFor(definition, request.namespace, request.name!)) as unknown as Pod
  const { deleteOptions } = eviction
  const dryRun = options.dryRun === true || (isRecord(deleteOptions) && Array.isArray(deleteOptions.dryRun))
  const evicting: Call = { ...call, options: { ...options, dryRun } }
  const spared = needsBudget(pod) ? await askBudget(plane, evicting, pod) : undefined

  const deletion = deletionOf(deleteOptions)
  // The budget has let the pod go as it is now: not ready.
  const isBound = spared !== undefined && deletion.preconditions?.resourceVersion === undefined
  const { resourceVersion } = pod.metadata
  try {
    await removePod(
      plane,
      evicting,
      isBound ? { ...deletion, preconditions: { ...deletion.preconditions, resourceVersion } } : deletion,
    )
  } catch (err) {
    if (isBound && isReason(err, 'Conflict')) throw stillProcessed(spared)
    throw err
  }
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 }
}

function evictionOf({ request: { body, name } }: Call): Record<string, unknown> {
  const eviction = isRecord(body) ? body : {}
  const { apiVersion = 'policy/v1', kind = 'Eviction', metadata } = eviction
  if (kind !== 'Eviction' || (apiVersion !== 'policy/v1' && apiVersion !== 'policy/v1beta1')) {
    const [sent, version] = [String(kind), String(apiVersion)]
    throw badRequest(
      `${sent} in version ${JSON.stringify(version.split('/').at(-1))} cannot be handled as a Eviction: no kind ${JSON.stringify(sent)} is registered for version ${JSON.stringify(version)} in scheme "${schemeName}"`,
    )
  }
  if (isRecord(metadata) && metadata.name === name) return eviction
  throw badRequest('name in URL does not match name in Eviction object')
}

/** Webhooks are asked about the Eviction, and not once more about the deletion that follows from it. */
async function announceEviction(plane: Plane, call: Call, eviction: Record<string, unknown>): Promise<void> {
  const { name, namespace } = call.request
  const metadata = { ...(isRecord(eviction.metadata) ? eviction.metadata : {}), name, namespace }
  const object = { kind: 'Eviction', apiVersion: 'policy/v1', ...eviction, metadata } as unknown as UnknownObject
  const view = { kind: { group: 'policy', version: 'v1', kind: 'Eviction' }, of: (one: UnknownObject) => one, into() {} }
  await mutateWebhooks(plane, call, 'CREATE', object, undefined, view)
  await validateWebhooks(plane, call, 'CREATE', object, undefined, view)
}

/**
 * @returns the name of the budget that lets the pod go only for not being ready, if one does
 * @throws StatusError TooManyRequests while the pod's budget does not let it go
 */
async function askBudget(plane: Plane, call: Call, pod: Pod): Promise<string | undefined> {
  const { namespace, labels, name } = pod.metadata
  const budgets = plane.store
    .list('poddisruptionbudgets.policy', namespace)
    .map((one) => one as unknown as PodDisruptionBudget)
    .filter(({ spec: { selector } }) => usableSelector(selector)?.matches(labels) === true)
  if (budgets.length > 1) {
    throw new StatusError('', 'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.')
  }
  const [budget] = budgets
  if (!budget) return undefined
  if (!isReady(pod) && sparesUnready(budget)) return budget.metadata.name
  const definition = plane.registry.find('policy', 'v1', 'poddisruptionbudgets')!
  await writeStatus(plane, { ...call, definition }, budget.metadata.name, (current) =>
    takeDisruption(current as unknown as PodDisruptionBudget, name, timestamp(plane.clock.now())),
  )
  return undefined
}

/** Says in the pod's status why it goes, and deletes it. */
async function removePod(plane: Plane, call: Call, deletion: Deletion): Promise<void> {
  const { definition, options, request } = call
  const { namespace, name } = request
  let { preconditions } = deletion
  if (!options.dryRun) {
    const marked = await writeStatus(plane, call, name!, (current) => {
      checkPreconditions(definition, current, deletion)
      addCondition(current as unknown as Pod, timestamp(plane.clock.now()))
    })
    // It is we who have written.
    if (preconditions?.resourceVersion !== undefined) {
      preconditions = { ...preconditions, resourceVersion: marked.metadata.resourceVersion! }
    }
  }
  await removeNamed(plane, call, namespace, name!, { ...deletion, ...(preconditions ? { preconditions } : {}) })
}

function addCondition({ status }: Pod, now: string): void {
  const others = (status.conditions ?? []).filter(({ type }) => type !== 'DisruptionTarget')
  const condition: PodCondition = {
    type: 'DisruptionTarget',
    status: 'True',
    lastTransitionTime: now,
    reason: 'EvictionByEvictionAPI',
    message: 'Eviction API: evicting',
  }
  status.conditions = [...others, condition]
}

/** A write of the server's own, on what others may have written meanwhile. */
const writeStatus = (
  plane: Plane,
  { definition, request: { namespace }, options: { dryRun = false }, signal }: Call,
  name: string,
  change: (current: UnknownObject) => void,
): Promise<KubeObject> =>
  modify(
    plane,
    {
      definition,
      request: {
        group: definition.group,
        version: definition.version,
        plural: definition.plural,
        verb: 'update',
        subresource: 'status',
        namespace: namespace!,
        name,
      },
      options: { dryRun },
      caller: { name: 'system:apiserver', groups: ['system:masters'], agent: 'kube-apiserver' },
      warnings: [],
      signal,
      isOwn: true,
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
