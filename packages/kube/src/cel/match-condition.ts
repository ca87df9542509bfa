/** Match conditions: CEL expressions that select the requests for which a webhook is called, or a policy evaluated. */
import { admissionExpression, type AdmissionInput, type AdmissionScope, failureText } from './admission-expression.ts'

export type MatchInput = AdmissionInput

export type MatchResult =
  | { readonly kind: 'value'; readonly matches: boolean }
  | { readonly kind: 'error'; readonly message: string }

/** Returns the compile error of a match condition; `undefined` for a valid condition. */
export function matchConditionProblem(source: string, scope?: AdmissionScope): string | undefined {
  const result = admissionExpression(source, scope, ['bool'])
  return typeof result === 'string' ? result : undefined
}

/** Compiles a match condition. @throws Error when it is invalid, see `matchConditionProblem` */
export function matchCondition(source: string, scope?: AdmissionScope): (input: MatchInput) => MatchResult {
  const compiled = admissionExpression(source, scope, ['bool'])
  if (typeof compiled === 'string') throw new Error(compiled)
  return (input) => {
    const result = compiled.run(input)
    return result.kind === 'value'
      ? { kind: 'value', matches: result.value === true }
      : { kind: 'error', message: failureText(source, result) }
  }
}
