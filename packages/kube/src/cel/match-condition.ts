/** Conditions in CEL over a request: which writes a webhook or a policy is about. */
import { admissionExpression, type AdmissionInput, type AdmissionScope, whyNot } from './admission-expression.ts'

export type MatchInput = AdmissionInput

export type MatchResult =
  | { readonly kind: 'value'; readonly matches: boolean }
  | { readonly kind: 'error'; readonly message: string }

/** What is wrong with a condition; `undefined` for one that can be used. */
export function matchConditionProblem(source: string, scope?: AdmissionScope): string | undefined {
  const result = admissionExpression(source, scope, ['bool'])
  return typeof result === 'string' ? result : undefined
}

/** A condition ready for use. @throws Error when it has a problem, see `matchConditionProblem` */
export function matchCondition(source: string, scope?: AdmissionScope): (input: MatchInput) => MatchResult {
  const made = admissionExpression(source, scope, ['bool'])
  if (typeof made === 'string') throw new Error(made)
  return (input) => {
    const result = made.run(input)
    return result.kind === 'value'
      ? { kind: 'value', matches: result.value === true }
      : { kind: 'error', message: whyNot(source, result) }
  }
}
