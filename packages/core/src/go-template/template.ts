/**
 * Go's text/template over JSON data: the language of naming templates and, with text functions of sprig, of ClusterClass patches. Templates
 * have no access to the clock, randomness, environment or network. The number of their steps and the size of their output are bounded.
 * Upstream: Go's text/template 1.26 and Masterminds/sprig v3 (`HermeticTxtFuncMap`). docs/reference/gaps.md lists the missing functions.
 */
import { draft } from '@capstan/kube'
import { builtinFunctions } from './builtin-functions.ts'
import { execute } from './execute.ts'
import { parse } from './parser.ts'
import { caseFunctions } from './text-functions/cases.ts'
import { collectionFunctions } from './text-functions/collections.ts'
import { comparisonFunctions } from './text-functions/comparison.ts'
import { durationFunctions } from './text-functions/durations.ts'
import { encodingFunctions } from './text-functions/encodings.ts'
import { jsonFunctions } from './text-functions/json.ts'
import { numberFunctions } from './text-functions/numbers.ts'
import { pathFunctions } from './text-functions/paths.ts'
import { regexFunctions } from './text-functions/regular-expressions.ts'
import { stringFunctions } from './text-functions/strings.ts'
import { urlFunctions } from './text-functions/urls.ts'
import { versionFunctions } from './text-functions/versions.ts'
import { wrappingFunctions } from './text-functions/wrapping.ts'
import type { TemplateFunction, Value } from './value.ts'

export interface GoTemplate {
  /**
   * Returns the output for `data`, which is not changed.
   * @throws Error with Go's text when the template cannot be executed, and with our own text when it exceeds a limit
   */
  render(data: unknown): string
}

export interface TemplateOptions {
  /** Result of a missing map key: `<no value>` (default), or an error. */
  readonly missingKey?: 'default' | 'error'
  /** Adds sprig's functions to Go's. Default true. */
  readonly textFunctions?: boolean
}

/**
 * Parses a template once, for repeated rendering. `name` appears in messages.
 * @throws Error with Go's text when `source` is not a template
 * @example goTemplate('name', '{{ .cluster.name | upper }}').render({ cluster: { name: 'demo' } }) // 'DEMO'
 */
export function goTemplate(name: string, source: string, options: TemplateOptions = {}): GoTemplate {
  const functions = options.textFunctions === false ? plainFunctions : allFunctions
  const definitions = parse(name, source, (word) => functions.has(word))
  const missingKeyFails = options.missingKey === 'error'
  return {
    // Copied, because some functions change the maps that they receive.
    render: (data) => execute({ name, source, definitions, functions, missingKeyFails }, draft(data) as Value),
  }
}

const plainFunctions: ReadonlyMap<string, TemplateFunction> = new Map(Object.entries(builtinFunctions))

/** Sprig's functions replace Go's of the same name (`slice`). */
const allFunctions: ReadonlyMap<string, TemplateFunction> = new Map(
  Object.entries({
    ...builtinFunctions,
    ...stringFunctions,
    ...caseFunctions,
    ...wrappingFunctions,
    ...encodingFunctions,
    ...pathFunctions,
    ...regexFunctions,
    ...numberFunctions,
    ...collectionFunctions,
    ...comparisonFunctions,
    ...versionFunctions,
    ...jsonFunctions,
    ...durationFunctions,
    ...urlFunctions,
  }),
)
