/** Validates the provisioner or driver name, and the parameters, of StorageClasses and VolumeAttributesClasses. */
import { type FieldError, invalid, qualifiedNameProblems, required, tooLong } from '@capstan/kube'
import { problems } from '../checks.ts'

const MaxParameters = 512
const MaxParametersSize = 256 * 1024

export const provisionerErrors = (path: string, name: string): FieldError[] =>
  name === '' ? [required(path)] : problems(path, name.toLowerCase(), qualifiedNameProblems(name.toLowerCase()))

export function parameterErrors(path: string, parameters: { [name: string]: string } = {}): FieldError[] {
  const entries = Object.entries(parameters)
  if (entries.length > MaxParameters) return [tooLong(path, MaxParameters)]
  const size = entries.reduce((sum, [name, value]) => sum + Buffer.byteLength(name) + Buffer.byteLength(value), 0)
  return [
    ...entries.flatMap(([name]) => (name === '' ? [invalid(path, name, 'field can not be empty.')] : [])),
    ...(size > MaxParametersSize ? [tooLong(path, MaxParametersSize)] : []),
  ]
}
