/** Who owns which field: the books that every write keeps. */
import {
  draft,
  fieldsAt,
  freeze,
  type KubeObject,
  type ManagedFieldsContext,
  parseApiVersion,
  resetFields,
  type UnknownObject,
  updateManagedFields,
  writeJSON,
} from '@capstan/kube'
import { needsWebhook } from '../conversion/converter.ts'
import { blankOf } from '../kinds/catalog.ts'
import { type Definition, inVersion } from '../registry/definition.ts'
import type { Call, Plane } from './plane.ts'

/** Brings the ownership in a draft up to date with what a write that is not an apply changed: the draft to go on with. */
export function trackFields(
  plane: Plane,
  call: Call,
  object: UnknownObject,
  old: UnknownObject | undefined,
): UnknownObject | Promise<UnknownObject> {
  if (!call.definition.conversion) {
    updateManagedFields(old, object, managedFieldsContext(plane, call, unneeded))
    return object
  }
  return withConversions(plane, call, (context) => {
    const next = draft(object)
    updateManagedFields(old, next, context)
    return next
  })
}

/**
 * Runs the bookkeeping, which compares objects in the versions in which managers wrote, and cannot wait. Where a webhook must be
 * asked for one of those, the run is broken off, and begins anew once the answer is there. `run` must not change what it is given.
 */
export async function withConversions<T>(plane: Plane, call: Call, run: (context: ManagedFieldsContext) => T): Promise<T> {
  const known = new Map<string, KubeObject>()
  const lookUp = (to: Definition, object: KubeObject): KubeObject => {
    const key = `${to.apiVersion} ${writeJSON(object)}`
    const found = known.get(key)
    if (!found) throw new ConversionNeeded(to, object, key)
    return found
  }
  for (;;) {
    try {
      return run(managedFieldsContext(plane, call, lookUp))
    } catch (err) {
      if (!(err instanceof ConversionNeeded)) throw err
      known.set(err.key, await plane.converter.show(err.to, err.object))
    }
  }
}

class ConversionNeeded extends Error {
  override readonly name = 'ConversionNeeded'
  readonly to: Definition
  readonly object: KubeObject
  readonly key: string

  constructor(to: Definition, object: KubeObject, key: string) {
    super(`a conversion to ${to.apiVersion} is needed`)
    this.to = to
    this.object = object
    this.key = key
  }
}

const unneeded = (to: Definition): never => {
  throw new TypeError(`${to.storage} has no conversion webhook`)
}

function managedFieldsContext(
  { registry, clock }: Plane,
  { definition, request: { subresource }, options, caller }: Call,
  lookUp: (to: Definition, object: KubeObject) => KubeObject,
): ManagedFieldsContext {
  return {
    apiVersion: definition.apiVersion,
    schema: definition.schema,
    manager: (options.fieldManager || caller.agent || 'unknown').slice(0, MaxManager),
    ...(subresource === undefined ? {} : { subresource }),
    ignored: definition.resets?.[subresource ?? '']
      ? fieldsAt(definition.resets[subresource ?? '']!)
      : resetFields({
          ...(subresource === 'status' ? { subresource } : {}),
          hasStatusSubresource: definition.statusSubresource,
          builtin: definition.builtin,
        }),
    now: clock.now(),
    ...(definition.component === undefined ? {} : { blank: blankObject(definition, definition.component) }),
    untimed: definition.builtin && subresource === 'scale',
    convert(object: KubeObject, apiVersion: string) {
      const { group, version } = parseApiVersion(apiVersion)
      const other = registry.find(group, version, definition.plural)
      if (other?.storage !== definition.storage) return undefined
      return { object: needsWebhook(other, object) ? lookUp(other, object) : inVersion(other, object), schema: other.schema }
    },
  }
}

/** What an object holds before anybody puts anything into it, in the form in which the server keeps it. */
function blankObject(definition: Definition, component: string): object {
  let blank = blanks.get(definition)
  if (!blank) {
    const object = draft(blankOf(component)) as UnknownObject
    definition.normalize?.(object)
    blanks.set(definition, (blank = freeze(object)))
  }
  return blank
}
const blanks = new WeakMap<Definition, object>()

/** Upstream: FieldManagerNameMaxLength, in bytes. */
const MaxManager = 128
