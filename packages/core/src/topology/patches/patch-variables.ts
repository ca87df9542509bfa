/** Computes the variables that a patch can use. Pure. Upstream: patches/variables, v1.14. */
import type { ClusterClassPatch, ClusterVariable, WireVariable } from '@capstan/api'
import { memberOrItem, VariableDefinitionFromInline } from '@capstan/api'
import type { Json, JsonObject } from '@capstan/kube'
import type { Blueprint } from '../blueprint.ts'
import type { PatchItem } from './patch-items.ts'

export interface PatchVariables {
  /** Variables of the Cluster that the patch may use, and `builtin`. */
  readonly global: JsonObject
  /** Variables that one template adds or overrides. */
  ownFor(item: PatchItem): JsonObject
  /** Global and own variables; the built-in variables of both are merged. */
  allFor(item: PatchItem): JsonObject
}

/** Returns the variables of a patch. Inline patches see variables that the class defines, external patches those of their extension. */
export function patchVariables(
  patch: ClusterClassPatch,
  { class: { status }, topology }: Blueprint,
  builtin: JsonObject,
): PatchVariables {
  const from = patch.external ? patch.name : VariableDefinitionFromInline
  const visible = new Set(
    (status?.variables ?? [])
      .filter(({ definitions }) => definitions.some((definition) => definition.from === from))
      .map(({ name }) => name),
  )
  const global = { ...valuesOf(topology.variables, visible), builtin }
  const ownFor = (item: PatchItem): JsonObject => {
    const values = valuesOf(item.overrides, visible)
    return Object.keys(item.builtin).length === 0 ? values : { ...values, builtin: item.builtin }
  }
  return {
    global,
    ownFor,
    allFor(item) {
      const { builtin: builtinOfItem = {}, ...values } = ownFor(item)
      return { ...global, ...values, builtin: { ...builtin, ...(builtinOfItem as JsonObject) } }
    },
  }
}

/** Converts variables to the form of hook requests. */
export const wireVariablesOf = (variables: JsonObject): WireVariable[] =>
  Object.entries(variables).map(([name, value]) => ({ name, value }))

function valuesOf(variables: readonly ClusterVariable[] | undefined, visible: ReadonlySet<string>): JsonObject {
  const values: JsonObject = {}
  for (const { name, value } of variables ?? [])
    if (name !== 'builtin' && visible.has(name)) values[name] = (value ?? null) as Json
  return values
}

/**
 * Returns why a path such as `network.cidrs[0]` has no value, in upstream's words; `undefined` if it has one. Upstream: GetVariableValue.
 */
export function variableProblem(variables: JsonObject, path: string): string | undefined {
  let value: Json = variables
  for (const [depth, segment] of path.split('.').entries()) {
    const [, name = segment, index] = /^([^[\]]+)\[(\d+)\]$/.exec(segment) ?? []
    const member = memberOrItem(value, name)
    if (member === undefined && depth === 0) return `variable ${JSON.stringify(segment)} does not exist`
    if (member === undefined)
      return `variable ${JSON.stringify(path)} does not exist: failed to lookup segment ${JSON.stringify(name)}`
    value = member
    if (index === undefined) continue
    const invalidPath = `variable ${JSON.stringify(path)} is invalid`
    if (!Array.isArray(value)) {
      const reason = `value doesn't contain array; it contains ${typeOf(value)}`
      return `${invalidPath}: failed to get array ${JSON.stringify(name)}: ${reason}`
    }
    if (Number(index) >= value.length) return `${invalidPath}: array does not have index ${index}`
    value = value[Number(index)]!
  }
  return undefined
}

/** Returns the name that fastjson, the JSON library of upstream, has for the type of a value that is not a list. */
const typeOf = (value: Json): string => (value === null ? 'null' : typeof value === 'boolean' ? String(value) : typeof value)
