/** Sets defaults, and removes nulls that mean an absent field. Upstream: apiextensions structural defaulting. */
import { each, type RemainingWork } from '../clock.ts'
import { draft, isRecord } from '../json.ts'
import type { JSONSchema } from '../schema.ts'

/** Changes a value in place. */
export type Change = (value: unknown) => RemainingWork

/**
 * Compiles a function that sets defaults for members that are absent, or null and not nullable. Defaults inside of the default value are
 * set, too. Returns `undefined` when no member at any depth has a default.
 */
export function compileDefault(schema: JSONSchema): Change | undefined {
  return compileWalk(schema, compileDefault, (property) => {
    if (property.default === undefined) return undefined
    return (object, name, present) => {
      if (!present || (object[name] === null && !property.nullable)) object[name] = draft(property.default)
    }
  })
}

/** Compiles a function that removes members with the value null that are not nullable and have no default. */
export function compileDropNulls(schema: JSONSchema): Change | undefined {
  return compileWalk(schema, compileDropNulls, (property) => {
    if (property.nullable || property.default !== undefined) return undefined
    return (object, name, present) => {
      if (present && object[name] === null) delete object[name]
    }
  })
}

type MemberAction = (object: Record<string, unknown>, name: string, present: boolean) => void

/**
 * Compiles a walk over the members of a value: first runs the action that `actionOf` returns for the schema of a member, then visits the
 * value of the member. Returns `undefined` when no member at any depth has an action.
 */
function compileWalk(
  schema: JSONSchema,
  compileInner: (schema: JSONSchema) => Change | undefined,
  actionOf: (schema: JSONSchema) => MemberAction | undefined,
): Change | undefined {
  const actions: { name: string; action: MemberAction }[] = []
  const changes = new Map<string, Change>()
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const [action, change] = [actionOf(property), compileInner(property)]
    if (action) actions.push({ name, action })
    if (change) changes.set(name, change)
  }
  const declared = new Set(Object.keys(schema.properties ?? {}))
  const other = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined
  const [actionForOthers, changeOthers] = other ? [actionOf(other), compileInner(other)] : [undefined, undefined]
  const item = schema.items ? compileInner(schema.items) : undefined
  if (actions.length + changes.size === 0 && !actionForOthers && !changeOthers && !item) return undefined

  return (value) => {
    if (Array.isArray(value)) return item && each(value, item)
    if (!isRecord(value)) return undefined
    for (const { name, action } of actions) action(value, name, Object.hasOwn(value, name) && value[name] !== undefined)
    if (changes.size === 0 && !actionForOthers && !changeOthers) return undefined
    // Visits the members of the object, not the properties of the schema: an object usually has few of the declared members.
    return each(Object.keys(value), (name) => {
      if (declared.has(name)) return changes.get(name)?.(value[name])
      actionForOthers?.(value, name, true)
      return changeOthers && Object.hasOwn(value, name) ? changeOthers(value[name]) : undefined
    })
  }
}
