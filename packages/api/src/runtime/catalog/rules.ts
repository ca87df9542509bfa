/**
 * Checks a catalog by the four rules for versions of hooks. Each problem is a sentence.
 * Upstream: docs/proposals/20220221-runtime-SDK.md, "Runtime SDK rules", v1.14.
 */
import type { JSONSchema, Stability } from '@capstan/kube'
import { stabilityOf } from '@capstan/kube'
import type { Hook } from '../hook.ts'
import type { Catalog } from './catalog.ts'
import { hookText } from './catalog.ts'
import type { ReleasedCatalog } from './release.ts'

/**
 * Returns the violations of the rules by a catalog that is about to be released. `catalog`: its hooks with their conversions.
 * `newCatalog`: the same catalog as data. `before`: all earlier releases, oldest first.
 */
export function catalogProblems(catalog: Catalog, newCatalog: ReleasedCatalog, before: readonly ReleasedCatalog[]): string[] {
  const last = before.at(-1)
  return [
    ...(last ? elementProblems(last, newCatalog) : []),
    ...conversionProblems(catalog),
    ...replacementProblems(newCatalog),
    ...(last ? removalProblems(last, newCatalog, before) : []),
  ]
}

/** Rule #1: an incompatible change of a released hook needs a new version. */
export const elementProblems = (last: ReleasedCatalog, newCatalog: ReleasedCatalog): string[] =>
  last.hooks.flatMap((previous) => {
    const current = newCatalog.hooks.find((hook) => hookText(hook) === hookText(previous))
    if (!current) return []
    const head = `Rule #1: ${hookText(previous)}`
    return [
      ...(current.blocking === previous.blocking
        ? []
        : [
            `${head} ${previous.blocking ? 'could block and cannot any more' : 'can block and could not before'}: that needs a new version`,
          ]),
      ...incompatibleChanges(previous.request, current.request, 'request').map(
        (change) => `${head}: ${change}: that needs a new version`,
      ),
      ...incompatibleChanges(previous.response, current.response, 'response').map(
        (change) => `${head}: ${change}: that needs a new version`,
      ),
    ]
  })

/** Returns the changes of a schema that need a new version, each as the beginning of a sentence that the caller completes. */
function incompatibleChanges(previous: JSONSchema, current: JSONSchema, path: string): string[] {
  if (previous.type !== current.type || previous.format !== current.format) {
    return [`${path} was ${typeText(previous)} and is ${typeText(current)}`]
  }
  const lostValues = (previous.enum ?? []).filter((value) => current.enum && !current.enum.includes(value))
  return [
    ...lostValues.map((value) => `${path} may no longer be ${valueText(value)}`),
    ...(!previous.enum && current.enum
      ? [`${path} could have any value and must be one of ${current.enum.map(valueText).join(', ')}`]
      : []),
    ...Object.entries(previous.definitions ?? {}).flatMap(([name, definition]) =>
      incompatibleChanges(definition, current.definitions?.[name] ?? {}, `${path}#${name}`),
    ),
    ...Object.entries(previous.properties ?? {}).flatMap(([name, field]) => {
      const fieldPath = `${path}.${name}`
      const newField = current.properties?.[name]
      if (!newField) return [`${fieldPath} is gone`]
      const isRequired = [previous, current].map((schema) => schema.required?.includes(name) === true)
      // Required fields of requests must stay required, because handlers rely on them. Responses must not get new required fields.
      const isLooser = path.startsWith('request') && isRequired[0] && !isRequired[1]
      const isStricter = path.startsWith('response') && !isRequired[0] && isRequired[1]
      return [
        ...(isLooser ? [`${fieldPath} was required and is optional`] : []),
        ...(isStricter ? [`${fieldPath} was optional and is required`] : []),
        ...incompatibleChanges(field, newField, fieldPath),
      ]
    }),
    ...(path.startsWith('response') ? [...newlyRequired(previous, current, path), ...newLimits(previous, current, path)] : []),
    ...(previous.items && current.items ? incompatibleChanges(previous.items, current.items, `${path}[]`) : []),
    ...(typeof previous.additionalProperties === 'object' && typeof current.additionalProperties === 'object'
      ? incompatibleChanges(previous.additionalProperties, current.additionalProperties, `${path}{}`)
      : []),
  ]
}

/** Returns new required fields of responses, which existing handlers do not send. */
const newlyRequired = (previous: JSONSchema, current: JSONSchema, path: string): string[] =>
  (current.required ?? []).filter((name) => !previous.properties?.[name]).map((name) => `${path}.${name} is new and required`)

/** Returns stricter limits for responses, which responses of existing handlers may violate. */
const newLimits = (previous: JSONSchema, current: JSONSchema, path: string): string[] =>
  [
    ...upperLimits.filter((limit) => (current[limit] ?? Infinity) < (previous[limit] ?? Infinity)),
    ...lowerLimits.filter((limit) => (current[limit] ?? -Infinity) > (previous[limit] ?? -Infinity)),
    ...(['pattern'] as const).filter((limit) => current[limit] !== undefined && current[limit] !== previous[limit]),
  ].map((limit) => `${path} has ${limit} ${current[limit]} and had ${previous[limit] ?? 'none'}`)

const upperLimits = ['maximum', 'maxLength', 'maxItems', 'maxProperties'] as const
const lowerLimits = ['minimum', 'minLength', 'minItems', 'minProperties'] as const

const valueText = (value: unknown): string => JSON.stringify(value)

const typeText = ({ type, format }: JSONSchema): string => [type ?? 'any value', format].filter(Boolean).join(' ')

/** Rule #2: requests of the newest version can be converted to every other version, and responses back. */
export const conversionProblems = (catalog: Catalog): string[] =>
  distinctHooks(catalog.hooks).flatMap((hook) => {
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

/** Rule #3: a version is deprecated only when another version that is at least as stable replaces it. */
export const replacementProblems = ({ hooks }: ReleasedCatalog): string[] =>
  hooks.flatMap((hook) => {
    if (!hook.deprecated) return []
    const isReplaced = hooks.some(
      (candidate) =>
        candidate.group === hook.group &&
        candidate.name === hook.name &&
        !candidate.deprecated &&
        rank(candidate.version) >= rank(hook.version),
    )
    return isReplaced
      ? []
      : [`Rule #3: ${hookText(hook)} is deprecated, and no other version that is at least as stable replaces it`]
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
export const removalProblems = (
  last: ReleasedCatalog,
  newCatalog: ReleasedCatalog,
  before: readonly ReleasedCatalog[],
): string[] =>
  last.hooks.flatMap((previous) => {
    if (newCatalog.hooks.some((hook) => hookText(hook) === hookText(previous))) return []
    const { months, releases } = supportWindows[stabilityOf(previous.version)]
    if (releases === 0) return []
    const head = `Rule #4: ${hookText(previous)} is gone`
    if (!previous.deprecated) return [`${head} without having been deprecated`]
    const { release, date } = previous.deprecated
    const releasesSince = before.filter((earlier) => earlier.date >= date).length
    const until = addMonths(date, months)
    const problems = [
      ...(newCatalog.date < until ? [`before ${until}`] : []),
      ...(releasesSince < releases ? [`after ${releasesSince} of ${releases} releases`] : []),
    ]
    return problems.length === 0 ? [] : [`${head} ${problems.join(' and ')}; it was deprecated in ${release} on ${date}`]
  })

function addMonths(date: string, months: number): string {
  const day = new Date(`${date}T00:00:00Z`)
  day.setUTCMonth(day.getUTCMonth() + months)
  return day.toISOString().slice(0, 10)
}

/** Returns one version of each hook. */
const distinctHooks = (hooks: readonly Hook[]): Hook[] =>
  hooks.filter(
    (hook, index) => hooks.findIndex((candidate) => candidate.group === hook.group && candidate.name === hook.name) === index,
  )
