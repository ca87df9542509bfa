/**
 * Computes the spec patch of one manager for a provider's object: fields that it set earlier and no longer wants are removed, fields of
 * other managers stay. managedFields record who set which field, as for labels; see docs/adr/0005-merge-patches-for-propagation.md. Pure.
 */
import { diffMerge, equal, isRecord, type JsonObject, type KubeObject, readJSON, writeJSON } from '@capstan/kube'

/** Returns the merge patch for `spec`; `undefined` when there is no difference. */
export function specPatch(object: KubeObject, manager: string, wanted: unknown): JsonObject | undefined {
  const spec = (object as { readonly spec?: unknown }).spec
  const present = isRecord(spec) ? spec : {}
  const fields = (of: (manager: string) => boolean): readonly Fields[] =>
    (object.metadata.managedFields ?? [])
      .filter((entry) => !entry.subresource && of(entry.manager))
      .flatMap(({ fieldsV1 }) => below(fieldsV1, 'spec'))
  const own = fields((name) => name === manager)
  const others = fields((name) => name !== manager)
  return diffMerge(present, merged(present, isRecord(wanted) ? wanted : {}, own, others))
}

type Fields = { readonly [element: string]: unknown }

const below = (fields: Fields | undefined, name: string): readonly Fields[] => under(fields, `f:${name}`)

function under(fields: Fields | undefined, element: string): readonly Fields[] {
  const found = fields?.[element]
  return isRecord(found) ? [found] : []
}

/** The resulting value: everything wanted, and the rest unless only this manager owns it. */
function merged(
  present: { readonly [name: string]: unknown },
  wanted: { readonly [name: string]: unknown },
  own: readonly Fields[],
  others: readonly Fields[],
): { [name: string]: unknown } {
  const result: { [name: string]: unknown } = {}
  for (const name of new Set([...Object.keys(present), ...Object.keys(wanted)])) {
    const [is, wants] = [present[name], wanted[name]]
    const [mine, theirs] = [own.flatMap((fields) => below(fields, name)), others.flatMap((fields) => below(fields, name))]
    // A value without fields of its own is atomic, which a map may be as well.
    const isOneValue = theirs.length === 0 && mine.some((fields) => Object.keys(fields).length === 0)
    if (Array.isArray(is) && Array.isArray(wants) && !isOneValue) result[name] = mergedItems(is, wants, mine, theirs)
    else if (wants !== undefined && (isOneValue || !(isRecord(wants) && isRecord(is)))) result[name] = wants
    else if (isRecord(is) && (wants !== undefined || theirs.length > 0)) {
      const left = merged(is, isRecord(wants) ? wants : {}, mine, theirs)
      // An object that becomes empty existed only for the removed fields.
      if (wants !== undefined || Object.keys(left).length > 0) result[name] = left
    } else if (mine.length === 0 || theirs.length > 0) result[name] = is
  }
  return result
}

/**
 * As above for a list with owned items: by key (`k:{"name":"a"}`) or by value (`v:"a"`). Items of other managers follow the wanted ones.
 */
function mergedItems(
  present: readonly unknown[],
  wanted: readonly unknown[],
  own: readonly Fields[],
  others: readonly Fields[],
): unknown[] {
  const keys = [...own, ...others].flatMap((fields) => Object.keys(fields)).filter((element) => element.startsWith('k:'))
  const elementOf = (item: unknown): string => keys.find((element) => hasKey(item, element)) ?? `v:${writeJSON(item)}`
  const isOf = (fields: readonly Fields[], element: string) => fields.some((one) => one[element] !== undefined)
  const items = wanted.map((wants) => {
    const element = elementOf(wants)
    const is = present.find((item) => elementOf(item) === element)
    if (!isRecord(is) || !isRecord(wants)) return wants
    const [mine, theirs] = [own, others].map((fields) => fields.flatMap((one) => under(one, element)))
    return merged(is, wants, mine!, theirs!)
  })
  const known = new Set(wanted.map(elementOf))
  return [...items, ...present.filter((item) => !known.has(elementOf(item)) && isOf(others, elementOf(item)))]
}

function hasKey(item: unknown, element: string): boolean {
  const key = readJSON(element.slice('k:'.length))
  return isRecord(item) && isRecord(key) && Object.entries(key).every(([name, value]) => equal(item[name], value))
}
