import {
  alreadyExists,
  appendAll,
  draft,
  freeze,
  type KubeObject,
  randomSuffix,
  randomUUID,
  StatusError,
  timestamp,
  type UnknownObject,
} from '@capstan/kube'
import type { ResourceInfo } from '../registry/resource-info.ts'
import { StoreConflict } from '../store/store.ts'
import { mutate, requireNamespace, validate } from './steps/admit.ts'
import { decode, draftOf } from './steps/decode.ts'
import { trackFields } from './steps/managed-fields.ts'
import { dropDuplicateOwners } from './steps/metadata.ts'
import { type RequestContext, keyFor, type ServerContext, writeContext } from './context.ts'
import { toStore } from './steps/to-store.ts'

/** Upstream: MaxNameLength less the suffix, and maxNameGenerationCreateAttempts. */
const MaxPrefix = 58
const NameAttempts = 8

export async function create(server: ServerContext, context: RequestContext): Promise<KubeObject> {
  const object = decode(context, draftOf(context.info, context.request.body), 'body')
  return createDecoded(server, context, object, (fresh) => trackFields(server, context, fresh, undefined))
}

/** Creates a decoded object. `track` records the managers of its fields. */
export async function createDecoded(
  server: ServerContext,
  context: RequestContext,
  object: UnknownObject,
  track: (object: UnknownObject) => UnknownObject | Promise<UnknownObject>,
): Promise<KubeObject> {
  const { info } = context
  if (info.createForbidden !== undefined) {
    const { name } = object.metadata
    throw new StatusError('Forbidden', `${info.storage} ${JSON.stringify(name ?? '')} is forbidden: ${info.createForbidden}`, {
      details: { name, ...(info.group === '' ? {} : { group: info.group }), kind: info.plural },
    })
  }
  const { metadata } = object
  delete metadata.deletionTimestamp
  delete metadata.deletionGracePeriodSeconds
  delete metadata.selfLink
  appendAll(context.warnings, dropDuplicateOwners(object))
  const tracked = await track(object)
  requireNamespace(server, info, tracked)
  // Name and uid are set later, as upstream does: a webhook sees the object before its name is generated.
  const admitted = await mutate(server, context, tracked, undefined)

  const prefix = admitted.metadata.name ? undefined : admitted.metadata.generateName
  for (let attempt = 1; ; attempt++) {
    const named = prefix === undefined ? admitted : draft(admitted)
    if (prefix !== undefined) named.metadata.name = generatedName(server, prefix)
    // Later stages rely on a name being present; validation refuses the empty one.
    else named.metadata.name ??= ''
    try {
      return await createNamed(server, context, named)
    } catch (err) {
      if (!(err instanceof StoreConflict)) throw err
      const exists = nameTaken(server, info, named)
      if (prefix === undefined) throw exists
      if (attempt < NameAttempts) continue
      throw new StatusError(
        'AlreadyExists',
        `${exists.message}, the server was not able to generate a unique name for the object`,
        { details: { ...exists.details, retryAfterSeconds: 1 } },
      )
    }
  }
}

/** Error for a name that is taken, possibly by an object that is being deleted. */
function nameTaken({ store }: ServerContext, info: ResourceInfo, { metadata: { namespace, name } }: UnknownObject): StatusError {
  const { message, details } = alreadyExists(info, name)
  const isGoing = store.get(keyFor(info, namespace, name))?.metadata.deletionTimestamp !== undefined
  return new StatusError('AlreadyExists', isGoing ? `object is being deleted: ${message}` : message, { details: details! })
}

async function createNamed(server: ServerContext, context: RequestContext, object: UnknownObject): Promise<KubeObject> {
  try {
    return await commitNew(server, context, object)
  } finally {
    server.pending.delete(object)
  }
}

async function commitNew(server: ServerContext, context: RequestContext, object: UnknownObject): Promise<KubeObject> {
  const { info, options } = context
  const { metadata } = object
  if (info.statusSubresource && !info.strategy.statusOnCreate) {
    delete object.status
    info.structural.default(object)
  }
  metadata.uid = randomUUID(server.random)
  metadata.creationTimestamp = timestamp(server.clock.now())
  if (info.strategy.generation) metadata.generation = 1
  else delete metadata.generation
  info.strategy.authorize?.(object, undefined, writeContext(server, context))
  info.strategy.prepare?.(object, undefined, writeContext(server, context))
  await validate(server, context, object, undefined)

  // Upstream checks this in the store, which dry runs do not reach.
  if (metadata.resourceVersion !== undefined && !options.dryRun) {
    throw new StatusError('', 'resourceVersion should not be set on objects to be created')
  }
  const key = keyFor(info, object.metadata.namespace, object.metadata.name)
  if (server.store.get(key)) throw new StoreConflict()
  if (options.dryRun) return freeze(object)
  const { object: written } = await server.store.commit({
    key,
    previous: undefined,
    object: await toStore(server, context, object),
  })
  return server.converter.show(info, written!)
}

const generatedName = ({ random }: ServerContext, prefix: string): string =>
  `${prefix.slice(0, MaxPrefix)}${randomSuffix(random)}`
