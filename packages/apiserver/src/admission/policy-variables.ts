import {
  type AdmissionExpression,
  admissionExpression,
  type AdmissionScope,
  type FieldError,
  invalid,
  isIdentifier,
  required,
} from '@capstan/kube'
import type { PolicySpec } from './policy-types.ts'

/**
 * Compiles the variables of a policy, in order: a variable may use earlier variables. Returns the variables whose expressions compile, and
 * the errors of names and expressions. As in upstream, a variable with an invalid name is returned, too.
 */
export function variablesOf({ variables = [], paramKind }: Pick<PolicySpec, 'variables' | 'paramKind'>): {
  readonly known: NonNullable<AdmissionScope['variables']>
  readonly errors: readonly FieldError[]
} {
  const known: { name: string; expression: AdmissionExpression }[] = []
  const errors: FieldError[] = []
  variables.forEach(({ name, expression }, index) => {
    const field = `spec.variables[${index}]`
    if (!name?.trim()) errors.push(required(`${field}.name`, 'name is not specified'))
    else if (!isIdentifier(name)) errors.push(invalid(`${field}.name`, name, 'must be a valid CEL identifier'))
    if (!expression?.trim()) errors.push(required(`${field}.expression`, 'expression is not specified'))
    else {
      const compiled = admissionExpression(expression, { hasParams: paramKind !== undefined, variables: [...known] })
      if (typeof compiled === 'string') errors.push(invalid(`${field}.expression`, expression, compiled))
      else known.push({ name, expression: compiled })
    }
  })
  return { known, errors }
}
