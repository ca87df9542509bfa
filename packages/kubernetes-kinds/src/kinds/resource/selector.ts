import { deviceSelectorProblem, type FieldError, forbidden, invalid, required, tooLong } from '@capstan/kube'
import type { DeviceSelector } from '../schemas/types.ts'
import { listErrors } from './lists.ts'

const MaxSelectors = 32
const MaxExpressionBytes = 10 * 1024

/** Validates the CEL expressions that select devices. */
export const selectorErrors = (field: string, selectors: readonly DeviceSelector[] | undefined): FieldError[] =>
  listErrors(field, selectors, MaxSelectors, (valuePath, { cel }) =>
    cel ? expressionErrors(`${valuePath}.cel.expression`, cel.expression) : [required(`${valuePath}.cel`)],
  )

function expressionErrors(field: string, expression: string): FieldError[] {
  if (Buffer.byteLength(expression) > MaxExpressionBytes) return [tooLong(field, MaxExpressionBytes)]
  const problem = deviceSelectorProblem(expression)
  switch (problem?.kind) {
    case 'invalid':
      return [invalid(field, expression, problem.message)]
    case 'too costly':
      return [forbidden(field, 'too complex, exceeds cost limit')]
    case undefined:
      return []
  }
}
