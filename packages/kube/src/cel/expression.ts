/** Compiled expressions and their results. */
import { appendAll } from '../lists.ts'
import { compile, type Variable } from './compile.ts'
import { kubernetesFunctions } from './environment.ts'
import type { Run } from './evaluate.ts'
import { type Dialect, parse } from './parse.ts'
import type { Type } from './type.ts'
import { EvaluationError, OutOfBudget, type Value } from './value.ts'

/** A compiled expression. */
export interface Expression {
  readonly source: string
  /** Type of the result. */
  readonly type: Type
  /** Reports whether the expression refers to a variable of this name, including variables of macros. */
  uses(name: string): boolean
  /**
   * Evaluates the expression until its cost exceeds `limit`. `values` returns a value for each variable, in the order of the variables; an
   * EvaluationError that `values` throws becomes the result.
   */
  run(values: () => Value[], limit: number): Result
}

/** Result of an evaluation, with its cost. */
export type Result = { readonly cost: number } & (
  | { readonly kind: 'value'; readonly value: Value }
  | { readonly kind: 'error'; readonly message: string }
  | { readonly kind: 'out of budget' }
)

/** Compiles an expression. @throws CompileError */
export function expression(source: string, variables: readonly Variable[], dialect?: Dialect): Expression {
  const node = parse(source, dialect)
  const { type, evaluate } = compile(source, node, variables, kubernetesFunctions)
  return {
    source,
    type,
    uses: (name) => mentions(node, name),
    run(values, limit) {
      const run: Run = { slots: [], spent: 0, limit }
      try {
        appendAll(run.slots, values())
        return { kind: 'value', value: evaluate(run), cost: run.spent }
      } catch (err) {
        if (err instanceof OutOfBudget) return { kind: 'out of budget', cost: run.spent }
        if (err instanceof EvaluationError) return { kind: 'error', message: err.message, cost: run.spent }
        throw err
      }
    },
  }
}

/** Reports whether a node refers to a name. As upstream, a reference to a macro variable of this name counts, too. */
function mentions(part: unknown, name: string): boolean {
  if (Array.isArray(part)) return part.some((item) => mentions(item, name))
  if (typeof part !== 'object' || part === null) return false
  if ('kind' in part && part.kind === 'name' && 'name' in part && part.name === name) return true
  return Object.values(part).some((member) => mentions(member, name))
}
