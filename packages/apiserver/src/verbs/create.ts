import {
  alreadyExists,
  draft,
  freeze,
  type KubeObject,
  randomSuffix,
  randomUUID,
  StatusError,
  timestamp,
  type UnknownObject,
} from '@capstan/kube'
import type { Definition } from '../registry/definition.ts'
import { StoreConflict } from '../store/store.ts'
import { mutate, requireNamespace, validate } from './admit.ts'
import { decode, draftOf } from './decode.ts'
import { requireRights } from './grants.ts'
import { trackFields } from './managed-fields.ts'
import { dropDuplicateOwners } from './metadata.ts'
import { type Call, keyFor, type Plane, writeContext } from './plane.ts'
import { toStore } from './to-store.ts'

/** Upstream: MaxNameLength less the suffix, and maxNameGenerationCreateAttempts. */
const MaxPrefix = 58
const NameAttempts = 8

export async function create(plane: Plane, call: Call): Promise<KubeObject> {
  const object = decode(call, draftOf(call.definition, call.request.body), 'body')
  return createDecoded(plane, call, object, (fresh) => trackFields(plane, call, fresh, undefined))
}

/** Creates what has been decoded. `track` records who owns its fields. */
export async function createDecoded(
  plane: Plane,
  call: Call,
  object: UnknownObject,
  track: (object: UnknownObject) => UnknownObject | Promise<UnknownObject>,
): Promise<KubeObject> {
  const { definition } = call
  if (definition.refusesCreates !== undefined) {
    const { name } = object.metadata
    throw new StatusError(
      'Forbidden',
      `${definition.storage} ${JSON.stringify(name ?? '')} is forbidden: ${definition.refusesCreates}`,
      {
        details: { name, ...(definition.group === '' ? {} : { group: definition.group }), kind: definition.plural },
      },
    )
  }
  const { metadata } = object
  delete metadata.deletionTimestamp
  delete metadata.deletionGracePeriodSeconds
  delete metadata.selfLink
  call.warnings.push(...dropDuplicateOwners(object))
  const tracked = await track(object)
  requireNamespace(plane, definition, tracked)
  // Identity comes after: a webhook sees an object that is still to get its name, if it is to be generated.
  const admitted = await mutate(plane, call, tracked, undefined)

  const prefix = admitted.metadata.name ? undefined : admitted.metadata.generateName
  for (let attempt = 1; ; attempt++) {
    const named = prefix === undefined ? admitted : draft(admitted)
    if (prefix !== undefined) named.metadata.name = generatedName(plane, prefix)
    // Whoever looks at it from here on finds a name, if an empty one, which validation refuses.
    else named.metadata.name ??= ''
    try {
      return await createNamed(plane, call, named)
    } catch (err) {
      if (!(err instanceof StoreConflict)) throw err
      const exists = inTheWay(plane, definition, named)
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

/** What has the name already, or has it still. */
function inTheWay({ store }: Plane, definition: Definition, { metadata: { namespace, name } }: UnknownObject): StatusError {
  const { message, details } = alreadyExists(definition, name)
  const isGoing = store.get(keyFor(definition, namespace, name))?.metadata.deletionTimestamp !== undefined
  return new StatusError('AlreadyExists', isGoing ? `object is being deleted: ${message}` : message, { details: details! })
}

async function createNamed(plane: Plane, call: Call, object: UnknownObject): Promise<KubeObject> {
  try {
    return await commitNew(plane, call, object)
  } finally {
    plane.pending.delete(object)
  }
}

async function commitNew(plane: Plane, call: Call, object: UnknownObject): Promise<KubeObject> {
  const { definition, options } = call
  const { metadata } = object
  if (definition.statusSubresource && !definition.statusOnCreate) {
    delete object.status
    definition.structural.default(object)
  }
  metadata.uid = randomUUID(plane.random)
  metadata.creationTimestamp = timestamp(plane.clock.now())
  if (definition.generation) metadata.generation = 1
  else delete metadata.generation
  requireRights(plane, call, object, undefined)
  definition.prepare?.(object, undefined, writeContext(plane, call))
  await validate(plane, call, object, undefined)

  // Upstream: it is the store that looks at it, which dry runs do not reach.
  if (metadata.resourceVersion !== undefined && !options.dryRun) {
    throw new StatusError('', 'resourceVersion should not be set on objects to be created')
  }
  const key = keyFor(definition, object.metadata.namespace, object.metadata.name)
  if (plane.store.get(key)) throw new StoreConflict()
  if (options.dryRun) return freeze(object)
  const { object: written } = await plane.store.commit({ key, previous: undefined, object: await toStore(plane, call, object) })
  return plane.converter.show(definition, written!)
}

const generatedName = ({ random }: Plane, prefix: string): string => `${prefix.slice(0, MaxPrefix)}${randomSuffix(random)}`
