/** Names of the objects that controllers make. Upstream: internal/topology/names, v1.14. */
import { randomSuffix } from '@capstan/kube'
import type { Random } from '@capstan/kube'
import type { GoTemplate } from '../go-template/template.ts'
import { goTemplate } from '../go-template/template.ts'

/** The longest name whose object can still be named in a label. */
const LongestName = 63
const SuffixLength = 5
const LongestBase = LongestName - SuffixLength

/** `base` and five random characters, with the base cut so that the name stays within 63. */
export const simpleName = (base: string, random: Random): string =>
  base.slice(0, LongestBase) + randomSuffix(random, SuffixLength)

/** What a name template may refer to beside `.random`, which is added: `{ cluster: { name }, machineSet: { name } }`. */
export type NameData = { readonly [object: string]: { readonly [field: string]: string } }

/**
 * The name that a template such as `{{ .cluster.name }}-{{ .random }}` gives, made fit when it is too long.
 *
 * @throws Error when the template is none, or refers to what is not there
 */
export function nameFromTemplate(template: string, data: NameData, random: Random): string {
  const name = rendered(parsed(template), { ...data, random: randomSuffix(random, SuffixLength) })
  return name.length > LongestName ? simpleName(name, random) : name
}

function parsed(template: string): GoTemplate {
  try {
    return goTemplate('template name generator', template, { missingKey: 'error', textFunctions: false })
  } catch (err) {
    throw new Error(`parsing template ${JSON.stringify(template)}: ${message(err)}`, { cause: err })
  }
}

function rendered(of: GoTemplate, data: object): string {
  try {
    return of.render(data)
  } catch (err) {
    throw new Error(`rendering template: ${message(err)}`, { cause: err })
  }
}

const message = (err: unknown): string => (err instanceof Error ? err.message : String(err))
