/** Generates names of the objects that controllers create. Upstream: internal/topology/names, v1.14. */
import { randomSuffix } from '@capstan/kube'
import type { Random } from '@capstan/kube'
import type { GoTemplate } from '../go-template/template.ts'
import { goTemplate } from '../go-template/template.ts'

/** Longest name that fits in a label value. */
const LongestName = 63
const SuffixLength = 5
const LongestBase = LongestName - SuffixLength

/** Returns `base` plus five random characters. The base is truncated so that the name has at most 63 characters. */
export const simpleName = (base: string, random: Random): string =>
  base.slice(0, LongestBase) + randomSuffix(random, SuffixLength)

/** Data for a name template, such as `{ cluster: { name }, machineSet: { name } }`. Templates can also use `.random`. */
export type NameData = { readonly [object: string]: { readonly [field: string]: string } }

/**
 * Renders a name template such as `{{ .cluster.name }}-{{ .random }}`. A name of more than 63 characters is truncated and gets five new
 * random characters at its end.
 * @throws Error when the template is invalid, or refers to missing data
 */
export function nameFromTemplate(template: string, data: NameData, random: Random): string {
  const name = render(parse(template), { ...data, random: randomSuffix(random, SuffixLength) })
  return name.length > LongestName ? simpleName(name, random) : name
}

function parse(template: string): GoTemplate {
  try {
    return goTemplate('template name generator', template, { missingKey: 'error', textFunctions: false })
  } catch (err) {
    throw new Error(`parsing template ${JSON.stringify(template)}: ${message(err)}`, { cause: err })
  }
}

function render(template: GoTemplate, data: object): string {
  try {
    return template.render(data)
  } catch (err) {
    throw new Error(`rendering template: ${message(err)}`, { cause: err })
  }
}

const message = (err: unknown): string => (err instanceof Error ? err.message : String(err))
