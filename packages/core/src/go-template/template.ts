/**
 * Go's text/template over JSON data, with the hermetic text functions of sprig: what ClusterClass patches and names are written in.
 * Nothing in a template reaches a clock, chance, the environment or the network, and what it may make is bounded.
 * Upstream: Go's text/template 1.26 and Masterminds/sprig v3 (`HermeticTxtFuncMap`).
 */
import { draft } from '@capstan/kube'
import { builtinFunctions } from './builtin-functions.ts'
import { execute } from './execute.ts'
import { parse } from './parser.ts'
import { collectionFunctions } from './text-functions/collections.ts'
import { comparisonFunctions } from './text-functions/comparison.ts'
import { jsonFunctions } from './text-functions/json.ts'
import { numberFunctions } from './text-functions/numbers.ts'
import { regexFunctions } from './text-functions/regular-expressions.ts'
import { stringFunctions } from './text-functions/strings.ts'
import type { TemplateFunction, Value } from './value.ts'

export interface GoTemplate {
  /** @throws Error with Go's text when the template cannot be executed over `data`, which is left as it is */
  render(data: unknown): string
}

export interface TemplateOptions {
  /** What a key that a map does not have gives: `<no value>` (default), or an error. */
  readonly missingKey?: 'default' | 'error'
  /** Sprig's functions beside Go's own. Default true. */
  readonly textFunctions?: boolean
}

/**
 * Parses a template once, to be rendered many times. `name` appears in messages.
 *
 * @throws Error with Go's text when `source` is no template
 * @example
 * goTemplate('name', '{{ .cluster.name | upper }}').render({ cluster: { name: 'demo' } }) // 'DEMO'
 */
export function goTemplate(name: string, source: string, options: TemplateOptions = {}): GoTemplate {
  const functions = options.textFunctions === false ? plainFunctions : allFunctions
  const definitions = parse(name, source, (word) => functions.has(word))
  const missingKeyFails = options.missingKey === 'error'
  return {
    // Some functions change the maps they are given.
    render: (data) => execute({ name, source, definitions, functions, missingKeyFails }, draft(data) as Value),
  }
}

const plainFunctions: ReadonlyMap<string, TemplateFunction> = new Map(Object.entries(builtinFunctions))

/** Sprig's functions win over Go's of the same name (`slice`). */
const allFunctions: ReadonlyMap<string, TemplateFunction> = new Map(
  Object.entries({
    ...builtinFunctions,
    ...stringFunctions,
    ...regexFunctions,
    ...numberFunctions,
    ...collectionFunctions,
    ...comparisonFunctions,
    ...jsonFunctions,
  }),
)
