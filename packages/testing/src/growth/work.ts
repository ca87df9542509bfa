/**
 * Computations that `growth.test.ts` measures by direct calls, because requests with the objects of `cases.ts` do not reach them, or reach
 * them only if earlier checks accept the object.
 */
import {
  applyJsonPatch,
  applyMergePatch,
  applyStrategicPatch,
  formatCheck,
  type JSONSchema,
  labelSelector,
  labelSelectorErrors,
  parseFieldSelector,
  parseLabelSelector,
  readJSON,
  s,
  scanJSON,
  structural,
} from '@capstan/kube'

export const many = <T>(size: number, make: (index: number) => T): T[] => Array.from({ length: size }, (_, index) => make(index))
/** Returns `size` objects with the names n0, n1, …, each with the fields of `extra`. */
export const named = (size: number, extra: object = {}) => many(size, (index) => ({ name: `n${index}`, ...extra }))

const patchedSchema: JSONSchema = s.object({
  containers: s.list(s.object({ name: s.string(), image: s.string().optional() })).listMap('name'),
  finalizers: s.list(s.string()).listSet(),
}).json

/** Validates a list of small objects by a schema, also as an update that changes all items. */
function validate(size: number, items: JSONSchema): unknown {
  const schema: JSONSchema = { type: 'object', properties: { list: { type: 'array', items } } }
  const object = (value: string) => ({ metadata: { name: 'a' }, list: many(size, (index) => ({ name: `n${index}`, value })) })
  const { validateSchema } = structural(schema)
  return [validateSchema(object('a') as never, undefined), validateSchema(object('a') as never, object('b') as never)]
}

/** Names of string formats in schemas. */
const formats =
  'bsonobjectid uri email hostname ipv4 ipv6 cidr mac uuid isbn creditcard ssn hexcolor rgbcolor byte date duration datetime k8s-short-name k8s-long-name'.split(
    ' ',
  )

/** Parts of texts that are nearly valid for some format. Repeated, they make regular expressions and parsers search as far as possible. */
const hostileParts = [
  'a',
  '1',
  ' ',
  '-',
  '.',
  '/',
  ':',
  '%',
  '@',
  '"',
  '\\',
  '[',
  '(',
  ',',
  '1.',
  '1:',
  'a@',
  'a-',
  '1h',
  '%4',
  'é',
  '😀',
]

/** Checks long texts of one repeated part, each also with the prefix `a` and an invalid end. */
const checkHostileTexts = (format: string, size: number): boolean[] =>
  hostileParts.flatMap((part) => [part.repeat(size), `a${part.repeat(size)}\x01`].map(formatCheck(format)!))

const rejectingSchema: JSONSchema = { type: 'object', properties: { value: { type: 'string', maxLength: 0 } } }

/** Computations by name. Their input grows in proportion to `size`. */
export const workOutsideRequests: readonly (readonly [name: string, work: (size: number) => unknown])[] = [
  ['a label selector of many requirements', (size) => parseLabelSelector(many(size, (index) => `n${index}=a`).join(','))],
  ['a label selector of many values', (size) => parseLabelSelector(`a in (${many(size, (index) => `n${index}`).join(',')})`)],
  [
    'matching a label selector of many requirements',
    (size) => {
      const matchExpressions = many(size, (index) => ({ key: `n${index}`, operator: 'NotIn', values: ['a'] }))
      return labelSelector({ matchExpressions }).matches({ n0: 'b' })
    },
  ],
  [
    'errors of many label requirements',
    (size) => labelSelectorErrors({ matchExpressions: many(size, () => ({ key: '-', operator: 'In', values: ['-'] })) }, 'spec'),
  ],
  ['a field selector of many terms', (size) => parseFieldSelector(many(size, (index) => `a${index}=b`).join(','))],
  ['JSON of many duplicate keys', (size) => scanJSON(`{${many(size, (index) => `"k${index % (size / 2)}":1`).join(',')}}`)],
  ['JSON of many integers beyond 2^53', (size) => readJSON(`[${many(size, () => '9007199254740993').join(',')}]`)],
  [
    'a strategic merge patch of many items',
    (size) => applyStrategicPatch({ containers: named(size) }, { containers: named(2 * size, { image: 'i' }) }, patchedSchema),
  ],
  [
    'a strategic merge patch that deletes many items',
    (size) => applyStrategicPatch({ containers: named(size) }, { containers: named(size, { $patch: 'delete' }) }, patchedSchema),
  ],
  [
    'a strategic merge patch that orders many items',
    (size) => {
      const order = named(size).toReversed()
      return applyStrategicPatch(
        { containers: named(size) },
        { '$setElementOrder/containers': order, containers: order },
        patchedSchema,
      )
    },
  ],
  [
    'a strategic merge patch that adds and deletes many values',
    (size) => {
      const names = many(size, (index) => `n${index}`)
      return applyStrategicPatch(
        { finalizers: names },
        { finalizers: many(size, (index) => `m${index}`), '$deleteFromPrimitiveList/finalizers': names },
        patchedSchema,
      )
    },
  ],
  [
    'a strategic merge patch that retains many keys',
    (size) => {
      const names = many(size, (index) => `n${index}`)
      const object = Object.fromEntries(names.map((name) => [name, 1]))
      return applyStrategicPatch({ a: object }, { a: { ...object, $retainKeys: names } }, {} as JSONSchema)
    },
  ],
  [
    'a merge patch of many members',
    (size) => {
      const object = Object.fromEntries(many(size, (index) => [`n${index}`, { a: 1 }]))
      return applyMergePatch(object, object)
    },
  ],
  [
    'a JSON patch of many operations',
    (size) =>
      applyJsonPatch(
        { a: [] as number[] },
        many(size, (index) => ({ op: 'add' as const, path: '/a/-', value: index }) as never),
      ),
  ],
  [
    'validation of many wrong items under allOf',
    (size) => validate(size, { type: 'object', allOf: [rejectingSchema, rejectingSchema] as never }),
  ],
  [
    'validation of many wrong items under anyOf',
    (size) => validate(size, { type: 'object', anyOf: [rejectingSchema, rejectingSchema] as never }),
  ],
  [
    'validation of many wrong items under oneOf',
    (size) => validate(size, { type: 'object', oneOf: [rejectingSchema, rejectingSchema] as never }),
  ],
  ['validation of many items under not', (size) => validate(size, { type: 'object', not: rejectingSchema as never })],
  ['validation of many wrong items', (size) => validate(size, rejectingSchema)],
  ...formats.map(
    (format) => [`hostile texts of the format ${format}`, (size: number) => checkHostileTexts(format, size)] as const,
  ),
]
