/**
 * Compiles the rules of one schema (`x-kubernetes-validations`). Upstream: apiextensions-apiserver pkg/apiserver/schema/cel, v0.36.
 */
import { byteLength } from '../byte-length.ts'
import type { JSONSchema, ValidationRule } from '../schema.ts'
import type { Variable } from './compile.ts'
import type { DeclaredSize } from './declared-size.ts'
import { estimatedCost } from './estimate.ts'
import { type Expression, expression, type Result } from './expression.ts'
import { objectSchemaView, type SchemaView, schemaView, unknownView } from './schema-view.ts'
import { CompileError } from './syntax.ts'
import { optionalOf } from './type.ts'
import { none, Optional, type Value } from './value.ts'

/** Old value of an update; `undefined` when there is none. */
type Before = { readonly value: unknown } | undefined

interface Message {
  readonly text: string | undefined
  readonly cost: number
  readonly isOutOfBudget: boolean
}

/** A compiled rule, or the reason why it does not compile. */
export interface CompiledRule {
  readonly rule: ValidationRule
  /** Compile error of the rule, with the text that a validation error of a CRD contains. */
  readonly error?: string
  /** Compile error of the message expression, in the same form. */
  readonly messageError?: string
  /** True for a transition rule, which reads the old value. */
  readonly usesOldSelf: boolean
  /**
   * Estimates the cost of the rule, and of its message expression if valid, for one value of the declared size. Absent when the rule is
   * empty or `error` is set.
   */
  estimates?(size: DeclaredSize): { readonly rule: number; readonly message?: number }
  /**
   * Evaluates the rule for a value and the old value, both in JSON form, until the cost exceeds `limit`. Absent when the rule is empty or
   * `error` is set.
   */
  evaluate?(self: unknown, old: Before, limit: number): Result
  /** Evaluates the message expression. Absent when `evaluate` is absent or the rule has no valid message expression. */
  message?(self: unknown, old: Before, limit: number): Message
}

const compiled = new WeakMap<JSONSchema, readonly CompiledRule[]>()
const compiledRoots = new WeakMap<JSONSchema, readonly CompiledRule[]>()

/**
 * Compiles the rules of this schema, without the rules of inner schemas. The result is cached by schema. If `isRoot` is true, rules
 * can also read apiVersion, kind, `metadata.name` and `metadata.generateName`.
 */
export function compileRules(schema: JSONSchema, isRoot: boolean): readonly CompiledRule[] {
  const cache = isRoot ? compiledRoots : compiled
  let compiledRules = cache.get(schema)
  if (!compiledRules) {
    const view = isRoot && schema.type === 'object' ? objectSchemaView(schema) : (schemaView(schema) ?? unknownView)
    compiledRules = (schema['x-kubernetes-validations'] ?? []).map((rule) => compileRule(rule, view))
    cache.set(schema, compiledRules)
  }
  return compiledRules
}

function compileRule(rule: ValidationRule, { type, view }: SchemaView): CompiledRule {
  const isOptional = rule.optionalOldSelf === true
  const variables: Variable[] = [
    { name: 'self', type },
    { name: 'oldSelf', type: isOptional ? optionalOf(type) : type },
  ]
  // An empty rule is not compiled, so that the validation of a CRD reports only that the rule is empty.
  if (!rule.rule?.trim()) return { rule, usesOldSelf: false }
  const condition = tryCompile(rule.rule, variables)
  const messageResult = rule.messageExpression?.trim() ? tryCompile(rule.messageExpression, variables) : undefined
  // Upstream: `oldSelf` in the message expression does not make a transition rule.
  const usesOldSelf = condition.compiled?.uses('oldSelf') === true
  const valuesOf = (self: unknown, old: Before) => (): Value[] => {
    const before = old && view(old.value)
    if (isOptional) return [view(self), before === undefined ? none : new Optional(before)]
    return [view(self), before ?? null]
  }
  const error =
    condition.error ?? (condition.compiled?.type.kind === 'bool' ? undefined : 'cel expression must evaluate to a bool')
  if (error !== undefined) return { rule, usesOldSelf, error }
  const { compiled } = condition as { compiled: Expression }
  const estimate = (source: string, size: DeclaredSize) => estimatedCost(source, variables, size)
  const base: CompiledRule = {
    rule,
    usesOldSelf,
    estimates: (size) => ({ rule: estimate(rule.rule, size) }),
    evaluate: (self, old, limit) => compiled.run(valuesOf(self, old), limit),
  }
  if (!messageResult) return base
  if (messageResult.error !== undefined) return { ...base, messageError: `messageExpression ${messageResult.error}` }
  const message = messageResult.compiled!
  if (message.type.kind !== 'string') return { ...base, messageError: 'messageExpression must evaluate to a string' }
  return {
    ...base,
    estimates: (size) => ({ rule: estimate(rule.rule, size), message: estimate(message.source, size) }),
    message(self, old, limit) {
      const result = message.run(valuesOf(self, old), limit)
      const text = result.kind === 'value' ? usableMessage(result.value) : undefined
      return { text, cost: result.cost, isOutOfBudget: result.kind === 'out of budget' }
    },
  }
}

function tryCompile(source: string, variables: readonly Variable[]): { compiled?: Expression; error?: string } {
  try {
    return { compiled: expression(source, variables) }
  } catch (err) {
    if (err instanceof CompileError) return { error: `compilation failed: ${err.message}` }
    throw err
  }
}

const MaxMessage = 5 * 1024

/** Returns the trimmed message; `undefined` when it cannot be used. Upstream: it must be one line, not empty, and at most 5 KiB. */
function usableMessage(value: Value): string | undefined {
  if (typeof value !== 'string') return undefined
  const text = value.trim()
  return text === '' || text.includes('\n') || byteLength(text) > MaxMessage ? undefined : text
}
