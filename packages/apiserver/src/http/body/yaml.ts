/**
 * Parses and formats YAML as Kubernetes does: YAML 1.1 scalars, so that `yes` is true and `0644` is 420, but without dates and sexagesimal
 * numbers.
 * Upstream: sigs.k8s.io/yaml.
 */
import { createRequire } from 'node:module'
import { yamlOptions } from '@capstan/kube'
import type { Document, LineCounter, ScalarTag, Tags } from 'yaml'

/** Loads the library on first use, because it has seventy modules and most clients send JSON. */
const yaml = () => createRequire(import.meta.url)('yaml') as typeof import('yaml')

/** The first document of a text. */
export interface YAMLDocument {
  readonly value: unknown
  /** Messages about duplicate keys of mappings, in the format of Go's parser. Unlike there, keys that are no strings are quoted, too. */
  readonly duplicates: readonly string[]
}

/**
 * Parses the first document of a text. If an alias refers to a value that contains the alias, the returned value is circular.
 * @throws Error for invalid YAML. Errors about too many aliases have the text of Go's parser, as have those about unknown aliases, except in
 * merge keys. Errors about too deep nesting have it without the limit. Syntax errors have the text of the YAML library.
 */
export function readYAML(text: string): YAMLDocument {
  const { isCollection, LineCounter, parseDocument } = yaml()
  try {
    const lineCounter = new LineCounter()
    const document = parseDocument(text, { ...parseOptions, lineCounter })
    const { contents, errors } = document
    // Upstream parses only the first document, and ignores text after the closing bracket of a flow collection.
    const end = isCollection(contents) && contents.flow ? contents.range![1] : Infinity
    const error = errors.find(({ code, pos }) => code !== 'MULTIPLE_DOCS' && (code !== 'UNEXPECTED_TOKEN' || pos[0] < end))
    if (error) throw new Error(`yaml: ${error.message}`)
    return { value: document.toJS({ maxAliasCount: MaxAliases }), duplicates: duplicateKeys(document, lineCounter) }
  } catch (err) {
    if (err instanceof ReferenceError) throw new Error(aliasProblem(err), { cause: err })
    if (isTooDeep(err)) throw new Error('yaml: exceeded max depth', { cause: err })
    throw err
  }
}

/** Like `readYAML`, but returns only the value. */
export const parseYAML = (text: string): unknown => readYAML(text).value

/** Returns the error text for an alias without its anchor, or for too many aliases. */
function aliasProblem({ message }: ReferenceError): string {
  const [, anchor] = /^Unresolved alias .*: (.*)$/.exec(message) ?? []
  return anchor === undefined ? 'yaml: document contains excessive aliasing' : `yaml: unknown anchor '${anchor}' referenced`
}

function duplicateKeys(document: Document.Parsed, lines: LineCounter): string[] {
  const { isScalar, visit } = yaml()
  const messages: string[] = []
  visit(document, {
    Map(_, { items }) {
      const earlierKeys = new Set<unknown>()
      for (const { key } of items) {
        if (!isScalar(key) || !key.range) continue
        if (earlierKeys.has(key.value))
          messages.push(`line ${lines.linePos(key.range[0]).line}: key ${JSON.stringify(String(key.value))} already set in map`)
        earlierKeys.add(key.value)
      }
    },
  })
  return messages
}

const MaxAliases = 1000

/** Reports whether the parser ran out of stack. The parser is recursive, and adds such an error to the document. */
const isTooDeep = (err: unknown): boolean => err instanceof Error && err.message.includes('Maximum call stack size exceeded')

export const formatYAML = (value: unknown): string =>
  yaml().stringify(value, { version: '1.1', sortMapEntries: true, lineWidth: 0, indentSeq: false, aliasDuplicateObjects: false })

const parseOptions = {
  ...yamlOptions,
  customTags: (tags: Tags): Tags =>
    yamlOptions
      .customTags(tags)
      .map((tag) => (typeof tag === 'object' && numberTags.has(tag.tag) ? withExactIntegers(tag as ScalarTag) : tag)),
  prettyErrors: false,
} as const

const numberTags = new Set(['tag:yaml.org,2002:int', 'tag:yaml.org,2002:float'])

/**
 * Returns a tag that parses signed 64-bit integers exactly: as bigint if they are not safe integers, like kube's `readJSON`.
 * Upstream: YAML is converted to JSON and decoded again, so that 1e18 becomes an integer.
 */
const withExactIntegers = (tag: ScalarTag): ScalarTag => ({
  ...tag,
  resolve(text, onError, options) {
    const resolved = tag.resolve(text, onError, options)
    // A float without an exponent resolves to a node instead of a number.
    const value = resolved instanceof Object && 'value' in resolved ? resolved.value : resolved
    if (!Number.isInteger(value) || Number.isSafeInteger(value)) return resolved
    const exactValue = typeof resolved === 'number' ? tag.resolve(text, onError, { ...options, intAsBigInt: true }) : value
    const digits = String(exactValue)
    if (!/^-?\d+$/.test(digits)) return value
    const integer = BigInt(digits)
    return BigInt.asIntN(64, integer) === integer ? integer : value
  },
})
