/**
 * Checks a catalog by the four rules for versions of hooks. Each problem is a sentence. The rules are from the proposal of the
 * Runtime SDK, "Runtime Hooks versioning and deprecation".
 */
import type { JSONSchema, Stability } from '@capstan/kube'
import { stabilityOf } from '@capstan/kube'
import type { Hook } from '../hook.ts'
import type { Catalog } from './catalog.ts'
import { hookText } from './catalog.ts'
import type { ReleasedCatalog } from './release.ts'

/** Returns the violations of the rules in `now`, which is about to be released. `before`: all earlier releases, oldest first. */
export function catalogProblems(catalog: Catalog, now: ReleasedCatalog, before: readonly ReleasedCatalog[]): string[] {
  const last = before.at(-1)
  return [
    ...(last ? elementProblems(last, now) : []),
    ...conversionProblems(catalog),
    ...replacementProblems(now),
    ...(last ? removalProblems(last, now, before) : []),
  ]
}

/** Rule #1: a released version keeps its elements. */
export const elementProblems = (last: ReleasedCatalog, now: ReleasedCatalog): string[] =>
  last.hooks.flatMap((was) => {
    const is = now.hooks.find((hook) => hookText(hook) === hookText(was))
    if (!is) return []
    const head = `Rule #1: ${hookText(was)}`
    return [
      ...(is.blocking === was.blocking
        ? []
        : [
            `${head} ${was.blocking ? 'could block and cannot any more' : 'can block and could not before'}: that needs a new version`,
          ]),
      ...changes(was.request, is.request, 'request').map((change) => `${head}: ${change}: that needs a new version`),
      ...changes(was.response, is.response, 'response').map((change) => `${head}: ${change}: that needs a new version`),
    ]
  })

function changes(was: JSONSchema, is: JSONSchema, path: string): string[] {
  if (was.type !== is.type || was.format !== is.format) {
    return [`${path} was ${typeText(was)} and is ${typeText(is)}`]
  }
  const lostValues = (was.enum ?? []).filter((value) => is.enum && !is.enum.includes(value))
  return [
    ...lostValues.map((value) => `${path} may no longer be ${valueText(value)}`),
    ...(!was.enum && is.enum ? [`${path} could have any value and must be one of ${is.enum.map(valueText).join(', ')}`] : []),
    ...Object.entries(was.definitions ?? {}).flatMap(([name, definition]) =>
      changes(definition, is.definitions?.[name] ?? {}, `${path}#${name}`),
    ),
    ...Object.entries(was.properties ?? {}).flatMap(([name, field]) => {
      const below = `${path}.${name}`
      const newField = is.properties?.[name]
      if (!newField) return [`${below} is gone`]
      const isRequired = [was, is].map((schema) => schema.required?.includes(name) === true)
      // Fields that handlers rely on must stay required in requests; responses must not get new required fields.
      const isLooser = path.startsWith('request') && isRequired[0] && !isRequired[1]
      const isStricter = path.startsWith('response') && !isRequired[0] && isRequired[1]
      return [
        ...(isLooser ? [`${below} was always there and may be absent`] : []),
        ...(isStricter ? [`${below} could be left out and must be there`] : []),
        ...changes(field, newField, below),
      ]
    }),
    ...(path.startsWith('response') ? [...newlyRequired(was, is, path), ...newLimits(was, is, path)] : []),
    ...(was.items && is.items ? changes(was.items, is.items, `${path}[]`) : []),
    ...(typeof was.additionalProperties === 'object' && typeof is.additionalProperties === 'object'
      ? changes(was.additionalProperties, is.additionalProperties, `${path}{}`)
      : []),
  ]
}

/** New required fields of responses: existing handlers do not send them. */
const newlyRequired = (was: JSONSchema, is: JSONSchema, path: string): string[] =>
  (is.required ?? []).filter((name) => !was.properties?.[name]).map((name) => `${path}.${name} is new and must be there`)

/** Stricter limits for responses: responses of existing handlers may violate them. */
const newLimits = (was: JSONSchema, is: JSONSchema, path: string): string[] =>
  [
    ...upperLimits.filter((limit) => (is[limit] ?? Infinity) < (was[limit] ?? Infinity)),
    ...lowerLimits.filter((limit) => (is[limit] ?? -Infinity) > (was[limit] ?? -Infinity)),
    ...(['pattern'] as const).filter((limit) => is[limit] !== undefined && is[limit] !== was[limit]),
  ].map((limit) => `${path} has ${limit} ${is[limit]} and had ${was[limit] ?? 'none'}`)

const upperLimits = ['maximum', 'maxLength', 'maxItems', 'maxProperties'] as const
const lowerLimits = ['minimum', 'minLength', 'minItems', 'minProperties'] as const

const valueText = (value: unknown): string => JSON.stringify(value)

const typeText = ({ type, format }: JSONSchema): string => [type ?? 'any value', format].filter(Boolean).join(' ')

/** Rule #2: requests of the newest version can be converted to every other version, and responses back. */
export const conversionProblems = (catalog: Catalog): string[] =>
  groupHooks(catalog.hooks).flatMap((hook) => {
    const versions = catalog.versions(hook)
    return versions.slice(1).flatMap((older) => {
      for (let current: Hook | undefined = older; current; current = current.newer?.hook) {
        if (current.newer && !catalog.find(current.newer.hook.group, current.newer.hook.version, current.newer.hook.name)) {
          return [
            `Rule #2: ${hookText(older)} is converted by way of ${hookText(current.newer.hook)}, which is not in the catalog`,
          ]
        }
        if (current.version === versions[0]!.version) return []
      }
      return [`Rule #2: ${hookText(older)} cannot be converted to ${hookText(versions[0]!)}: declare its newer version`]
    })
  })

/** Rule #3: a version is deprecated only when another one that is at least as stable replaces it. */
export const replacementProblems = ({ hooks }: ReleasedCatalog): string[] =>
  hooks.flatMap((hook) => {
    if (!hook.deprecated) return []
    const isReplaced = hooks.some(
      (other) =>
        other.group === hook.group && other.name === hook.name && !other.deprecated && rank(other.version) >= rank(hook.version),
    )
    return isReplaced
      ? []
      : [`Rule #3: ${hookText(hook)} is deprecated, and no other version that is at least as stable is there instead`]
  })

const ranks: { readonly [stability in Stability]: number } = { alpha: 0, beta: 1, stable: 2 }
const rank = (version: string): number => ranks[stabilityOf(version)]

/** Support windows after a deprecation, in months and in releases, whichever is longer. */
export const supportWindows: { readonly [stability in Stability]: { readonly months: number; readonly releases: number } } = {
  alpha: { months: 0, releases: 0 },
  beta: { months: 6, releases: 2 },
  stable: { months: 12, releases: 3 },
}

/** Rule #4: a version is removed only after its support window. */
export const removalProblems = (last: ReleasedCatalog, now: ReleasedCatalog, before: readonly ReleasedCatalog[]): string[] =>
  last.hooks.flatMap((was) => {
    if (now.hooks.some((hook) => hookText(hook) === hookText(was))) return []
    const { months, releases } = supportWindows[stabilityOf(was.version)]
    if (releases === 0) return []
    const head = `Rule #4: ${hookText(was)} is gone`
    if (!was.deprecated) return [`${head} without having been deprecated`]
    const { release, date } = was.deprecated
    const releasesSince = before.filter((earlier) => earlier.date >= date).length
    const until = addMonths(date, months)
    const problems = [
      ...(now.date < until ? [`before ${until}`] : []),
      ...(releasesSince < releases ? [`after ${releasesSince} of ${releases} releases`] : []),
    ]
    return problems.length === 0 ? [] : [`${head} ${problems.join(' and ')}; it was deprecated in ${release} on ${date}`]
  })

function addMonths(date: string, months: number): string {
  const day = new Date(`${date}T00:00:00Z`)
  day.setUTCMonth(day.getUTCMonth() + months)
  return day.toISOString().slice(0, 10)
}

const groupHooks = (hooks: readonly Hook[]): Hook[] =>
  hooks.filter((hook, index) => hooks.findIndex((other) => other.group === hook.group && other.name === hook.name) === index)
