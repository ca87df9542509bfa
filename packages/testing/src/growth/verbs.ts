/** Measures requests to the API server with objects in which one list, map or string grows: the growth cases of `cases.ts`. */
import { isStored } from '@capstan/apiserver'
import type { ApiRequest, PatchType } from '@capstan/kube'
import type { ApiServer } from '@capstan/kubernetes-kinds'
import type { GrowthCase } from './cases.ts'
import { type GrowthMeasurement, measureGrowth } from './growth.ts'

const caller = { name: 'admin', groups: ['system:masters'], agent: 'growth' }

/** Number of measured cases. Names of stored objects contain it, because objects of earlier cases of a kind may still exist. */
let measuredCases = 0

/**
 * Measures a case with `create`. If `verbs` is `all`, and the server accepts and stores the objects, also measures update, each type of patch
 * that the kind supports, a dry run, a status update (if the kind has a status subresource), list, watch and delete.
 */
export async function measureVerbs(
  server: ApiServer,
  growthCase: GrowthCase,
  verbs: 'create' | 'all',
): Promise<GrowthMeasurement[]> {
  const { group, version, plural, namespaced } = growthCase.resource
  const target = { group, version, plural, ...(namespaced ? { namespace: 'default' } : {}) }
  /** Sends a request. Returns whether the server accepts it. */
  const send = (request: Partial<ApiRequest> & Pick<ApiRequest, 'verb'>): Promise<boolean> =>
    server.engine.execute({ ...target, options: {}, ...request } as ApiRequest, caller).then(
      () => true,
      () => false,
    )
  const options = { fieldValidation: 'Strict' as const, fieldManager: 'growth' }
  const prefix = `n${++measuredCases}`
  const nameOf = (size: number): string => `${prefix}-${size}`
  const created = new Set<number>()
  let furtherObjects = 0
  const create = async (size: number): Promise<void> => {
    const name = created.has(size) ? `${nameOf(size)}-${++furtherObjects}` : nameOf(size)
    if (await send({ verb: 'create', body: growthCase.object(name, size), options })) created.add(size)
  }
  const existsAfterCreate = async (size: number): Promise<boolean> => {
    if (!created.has(size)) await create(size)
    return created.has(size)
  }
  const measurements: GrowthMeasurement[] = []
  const measure = async (verb: string, work: (size: number) => Promise<unknown>): Promise<void> => {
    measurements.push(await measureGrowth(`${verb} ${growthCase.name}`, work, existsAfterCreate))
  }

  await measure('create', create)
  // Resources that are not stored, such as reviews, can only be created.
  if (created.size === 0 || verbs === 'create' || !isStored(growthCase.resource)) return measurements
  const changed = (size: number): object => {
    const object = growthCase.object(nameOf(size), size) as { metadata: object }
    return { ...object, metadata: { ...object.metadata, annotations: { growth: 'changed' } } }
  }
  await measure('update', (size) => send({ verb: 'update', name: nameOf(size), body: changed(size), options }))
  const patch = (patchType: PatchType, body: (size: number) => unknown) => (size: number) =>
    send({ verb: 'patch', name: nameOf(size), patchType, body: body(size), options: { ...options, force: true } } as never)
  await measure('merge patch', patch('application/merge-patch+json', changed))
  if (growthCase.resource.builtin)
    await measure('strategic merge patch', patch('application/strategic-merge-patch+json', changed))
  await measure(
    'JSON patch',
    patch('application/json-patch+json', (size) => [{ op: 'add', path: '', value: changed(size) }]),
  )
  await measure('apply', patch('application/apply-patch+yaml', changed))
  const dryRun = { ...options, dryRun: true }
  await measure('dry run', (size) => send({ verb: 'create', body: growthCase.object(`dry-${size}`, size), options: dryRun }))
  if (growthCase.resource.statusSubresource) {
    const updateStatus = (size: number) =>
      send({ verb: 'update', name: nameOf(size), subresource: 'status', body: changed(size), options })
    await measure('status update', updateStatus)
  }
  await measure('list', () => send({ verb: 'list' }))
  await measure('watch', (size) => firstEvent(server, { ...target, verb: 'watch', name: nameOf(size), options: {} }))
  const deleteOptions = { kind: 'DeleteOptions', apiVersion: 'v1', propagationPolicy: 'Background', gracePeriodSeconds: 0 }
  await measure('delete', (size) => send({ verb: 'delete', name: nameOf(size), body: deleteOptions }))
  return measurements
}

/** Opens a watch of one object, and reads its first event. */
async function firstEvent(server: ApiServer, request: ApiRequest): Promise<void> {
  const stop = new AbortController()
  const stream = await server.engine.watch(request, caller, stop.signal)
  await stream[Symbol.asyncIterator]().next()
  stop.abort()
}
