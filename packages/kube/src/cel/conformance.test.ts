/** The conformance suite of CEL, for the parts that Kubernetes enables. */
import { tests } from '@bufbuild/cel-spec/testdata/conformance.js'
import { expect, test } from 'vitest'
import { expression } from './expression.ts'
import { CompileError } from './syntax.ts'
import { dyn } from './type.ts'
import { CelList, Duration, equalValues, LiteralMap, Timestamp, TypeValue, typeName, Uint, type Value } from './value.ts'

interface Suite {
  readonly name: string
  readonly suites?: readonly Suite[]
  readonly tests?: readonly { readonly original: Case }[]
}

interface Case {
  readonly name: string
  readonly expr: string
  readonly container?: string
  readonly disableCheck?: boolean
  readonly bindings?: { readonly [name: string]: { readonly value: Literal } }
  readonly value?: Literal
  readonly evalError?: unknown
}

type Literal = { readonly [kind: string]: never }

/**
 * Suites that are not run: messages, enums, containers, qualified names, quoted field names, unknown values, deduced types, and extensions
 * that Kubernetes does not have or enables only for some expressions (bindings).
 */
const notInKubernetes =
  /^(?:enums|proto|wrappers|dynamic|encoders|block|math_ext|type_deduction|unknowns|bindings|namespace)|qualified_identifier|quoted_map_fields/
/** Kubernetes returns the whole duration in milliseconds; the specification requires the part below a second. */
const differsInKubernetes = 'timestamps/duration_converters get_milliseconds'
/** Reports whether the error is a type mismatch, such as in a list literal with items of different types. Kubernetes has this error, too. */
const isTypeMismatch = (err: unknown): boolean =>
  err instanceof CompileError && /expected type '.*' but found '/.test(err.message)

test('expressions evaluate as the specification requires', () => {
  let passed = 0
  const failed: string[] = []
  const visit = ({ name, suites = [], tests: cases = [] }: Suite, path: string): void => {
    for (const suite of suites) visit(suite, `${path}/${suite.name}`)
    for (const { original } of cases) {
      if (original.container || original.disableCheck || notInKubernetes.test(path) || notInKubernetes.test(name)) continue
      if (`${path} ${original.name}` === differsInKubernetes) continue
      if (/TestAllTypes|google\.protobuf\.(?!Timestamp|Duration)/.test(original.expr)) continue
      const result = runCase(original)
      if (result === true) passed++
      else if (result !== undefined) failed.push(`${path} ${original.name}: ${original.expr} → ${result}`)
    }
  }
  for (const suite of (tests as unknown as Suite).suites ?? []) visit(suite, suite.name)
  expect(failed).toEqual([])
  expect(passed).toBeGreaterThan(1200)
})

/**
 * Runs a case. Returns true when it passes, an error text when it fails, `undefined` when it has a value that `valueOf` does not support,
 * or a type mismatch, for which Kubernetes differs from the specification.
 */
function runCase({ expr, bindings = {}, value, evalError }: Case): true | string | undefined {
  const names = Object.keys(bindings)
  let inputs: Value[]
  let expected: Value
  try {
    inputs = names.map((name) => valueOf(bindings[name]!.value))
    expected = value ? valueOf(value) : true
  } catch {
    return undefined
  }
  try {
    const compiled = expression(
      expr,
      names.map((name) => ({ name, type: dyn })),
    )
    const result = compiled.run(() => inputs, 1e7)
    if (result.kind !== 'value') return evalError !== undefined && result.kind === 'error' ? true : JSON.stringify(result)
    if (evalError !== undefined) return 'no error'
    const isSame = Number.isNaN(expected) ? Number.isNaN(result.value) : equalValues(result.value, expected)
    return (isSame && typeName(result.value) === typeName(expected)) || `unexpected ${typeName(result.value)}`
  } catch (err) {
    if (isTypeMismatch(err)) return undefined
    return evalError !== undefined && err instanceof CompileError ? true : (err as Error).message
  }
}

function valueOf(literal: Literal): Value {
  const [[kind, raw]] = Object.entries(literal) as unknown as [[string, unknown]]
  switch (kind) {
    case 'int64Value':
      return BigInt(raw as string)
    case 'uint64Value':
      return new Uint(BigInt(raw as string))
    case 'doubleValue':
      return Number(raw)
    case 'stringValue':
    case 'boolValue':
    case 'nullValue':
      return raw as Value
    case 'bytesValue':
      return Uint8Array.from(atob(raw as string), (letter) => letter.charCodeAt(0))
    case 'listValue':
      return new CelList(((raw as { values?: Literal[] }).values ?? []).map(valueOf))
    case 'mapValue': {
      const { entries = [] } = raw as { entries?: { key: Literal; value: Literal }[] }
      return new LiteralMap(entries.map((entry) => [valueOf(entry.key), valueOf(entry.value)] as const))
    }
    case 'typeValue':
      return new TypeValue(raw as string)
    case 'objectValue': {
      const { '@type': type, value } = raw as { '@type': string; value: string }
      const name = type.endsWith('Timestamp') ? 'timestamp' : type.endsWith('Duration') ? 'duration' : undefined
      if (!name) break
      const result = expression(`${name}(${JSON.stringify(value)})`, []).run(() => [], 1000)
      if (result.kind === 'value' && (result.value instanceof Timestamp || result.value instanceof Duration)) return result.value
    }
  }
  throw new Error(`${kind} is not supported`)
}
