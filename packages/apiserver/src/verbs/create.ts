/** Creates objects, in the stages of `write.ts`. */
import {
  alreadyExists,
  draft,
  inPieces,
  type KubeObject,
  randomSuffix,
  randomUUID,
  StatusError,
  timestamp,
  type UnknownObject,
} from '@capstan/kube'
import type { ResourceInfo } from '../registry/resource-info.ts'
import { StoreConflict } from '../store/store.ts'
import { decodingBody } from './steps/decode.ts'
import { trackFields } from './steps/managed-fields.ts'
import { type RequestContext, keyFor, type ServerContext } from './context.ts'
import { draftFor, store, type Write } from './write.ts'

/** Maximum length of a generated name without its suffix. Upstream: MaxGeneratedNameLength. */
const MaxPrefix = 58
/** Maximum number of generated names that are tried. Upstream: maxNameGenerationCreateAttempts. */
const NameAttempts = 8

export async function create(server: ServerContext, context: RequestContext): Promise<KubeObject> {
  const object = await inPieces(server.clock, decodingBody(context))
  return createDecoded(server, context, object, (newObject) => trackFields(server, context, newObject, undefined))
}

/** Creates a decoded object. `track` records the managers of its fields. */
export async function createDecoded(
  server: ServerContext,
  context: RequestContext,
  object: UnknownObject,
  track: Write['manageFields'],
): Promise<KubeObject> {
  const { info } = context
  if (info.createForbidden !== undefined) throw createForbidden(info, object)
  const write: Write = {
    decode: () => object,
    reset({ metadata }) {
      const fields: Partial<KubeObject['metadata']> = metadata
      delete fields.uid
      delete fields.creationTimestamp
      delete fields.deletionTimestamp
      delete fields.deletionGracePeriodSeconds
      delete fields.selfLink
    },
    manageFields: track,
    check: (named) => checkNew(server, context, named),
  }
  // As upstream, a name is generated, and the server sets the uid, only after mutating admission.
  const drafted = await draftFor(server, context, write)

  const prefix = drafted.metadata.name ? undefined : drafted.metadata.generateName
  for (let attempt = 1; ; attempt++) {
    const named = prefix === undefined ? drafted : draft(drafted)
    if (prefix !== undefined) named.metadata.name = generatedName(server, prefix)
    // Later stages require that the name is a string; validation rejects the empty name.
    else named.metadata.name ??= ''
    setSystemFields(server, info, named)
    try {
      return await store(server, context, write, named)
    } catch (err) {
      if (!(err instanceof StoreConflict)) throw err
      const nameTakenError = nameTaken(server, info, named)
      if (prefix === undefined) throw nameTakenError
      if (attempt < NameAttempts) continue
      throw new StatusError(
        'AlreadyExists',
        `${nameTakenError.message}, the server was not able to generate a unique name for the object`,
        { details: { ...nameTakenError.details, retryAfterSeconds: 1 } },
      )
    }
  }
}

/** Sets uid, creation time and, for kinds that have one, the generation; drops the status if a create of this kind cannot set it. */
function setSystemFields({ random, clock }: ServerContext, info: ResourceInfo, object: UnknownObject): void {
  const { metadata } = object
  if (info.statusSubresource && !info.strategy.statusOnCreate) {
    delete object.status
    info.structural.default(object)
  }
  metadata.uid = randomUUID(random)
  metadata.creationTimestamp = timestamp(clock.now())
  if (info.strategy.generation) metadata.generation = 1
  else delete metadata.generation
}

/** @throws StatusError for a resourceVersion (as upstream, not in a dry run), StoreConflict for a name that is in use */
function checkNew({ store }: ServerContext, { info, options }: RequestContext, { metadata }: UnknownObject): void {
  if (metadata.resourceVersion !== undefined && !options.dryRun) {
    throw new StatusError('', 'resourceVersion should not be set on objects to be created')
  }
  if (store.get(keyFor(info, metadata.namespace, metadata.name))) throw new StoreConflict()
}

const createForbidden = (info: ResourceInfo, { metadata: { name } }: UnknownObject): StatusError =>
  new StatusError('Forbidden', `${info.storage} ${JSON.stringify(name ?? '')} is forbidden: ${info.createForbidden}`, {
    details: { name, ...(info.group === '' ? {} : { group: info.group }), kind: info.plural },
  })

/** Error for a name that is taken, possibly by an object that is being deleted. */
function nameTaken({ store }: ServerContext, info: ResourceInfo, { metadata: { namespace, name } }: UnknownObject): StatusError {
  const { message, details } = alreadyExists(info, name)
  const isDeleting = store.get(keyFor(info, namespace, name))?.metadata.deletionTimestamp !== undefined
  return new StatusError('AlreadyExists', isDeleting ? `object is being deleted: ${message}` : message, { details: details! })
}

const generatedName = ({ random }: ServerContext, prefix: string): string =>
  `${prefix.slice(0, MaxPrefix)}${randomSuffix(random)}`
