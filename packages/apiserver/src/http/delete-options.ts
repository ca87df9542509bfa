/** DeleteOptions, from the body or the query of a request. */
import type { FieldError, RequestOptions } from '@capstan/kube'
import { badRequest, invalid, isInt64, isNumeric, isRecord, jsonTypeName, notSupported } from '@capstan/kube'
import { boolean, dryRunOf, integer, reject, text } from './options.ts'

/**
 * Reads DeleteOptions from the body, or from the query when there is no body.
 * @returns the DeleteOptions without `dryRun`, and `dryRun` as a request option
 * @throws StatusError BadRequest for a field of the wrong type; Invalid for an unsupported value, and for `propagationPolicy` together with
 * `orphanDependents`
 */
export function deleteOptionsOf(body: unknown, query: URLSearchParams): { body: object; options: RequestOptions } {
  const fromQuery = () => ({
    ...text(query, 'propagationPolicy'),
    ...integer(query, 'gracePeriodSeconds'),
    ...boolean(query, 'orphanDependents'),
  })
  const deleteOptions: Record<string, unknown> = isRecord(body) ? { ...body } : { ...fromQuery(), dryRun: query.getAll('dryRun') }
  const problem = deleteOptionsProblem(deleteOptions)
  if (problem !== undefined) throw badRequest(problem)
  const dryRun = (deleteOptions.dryRun ?? []) as readonly unknown[]
  const { propagationPolicy: policy, orphanDependents, gracePeriodSeconds } = deleteOptions
  const errors: FieldError[] = []
  const options = dryRunOf(dryRun, errors)
  if (policy !== undefined && policy !== null && orphanDependents !== undefined && orphanDependents !== null) {
    errors.push(invalid('propagationPolicy', policy, 'orphanDependents and deletionPropagation cannot be both set'))
  } else if (policy !== undefined && policy !== null && !['Foreground', 'Background', 'Orphan'].includes(policy as string)) {
    const supported = '"Foreground", "Background", "Orphan", "nil"'
    errors.push({
      ...notSupported('propagationPolicy', policy, []),
      text: `Unsupported value: ${JSON.stringify(policy)}: supported values: ${supported}`,
    })
  }
  // Upstream: a negative grace period counts as one second.
  if (isNumeric(gracePeriodSeconds) && gracePeriodSeconds < 0) deleteOptions.gracePeriodSeconds = 1
  reject('DeleteOptions', errors)
  delete deleteOptions.dryRun
  return { body: deleteOptions, options }
}

/** Returns the error text for DeleteOptions whose fields do not have their Go types; `undefined` for valid types. */
function deleteOptionsProblem({
  gracePeriodSeconds,
  orphanDependents,
  propagationPolicy,
  dryRun,
  preconditions,
}: Record<string, unknown>): string | undefined {
  const wrongType = (field: string, value: unknown, type: string) =>
    `json: cannot unmarshal ${jsonTypeName(value, type)} into Go struct field DeleteOptions.${field} of type ${type}`
  const isText = (value: unknown) => value === undefined || value === null || typeof value === 'string'
  if (gracePeriodSeconds !== undefined && gracePeriodSeconds !== null && !isInt64(gracePeriodSeconds))
    return wrongType('gracePeriodSeconds', gracePeriodSeconds, 'int64')
  if (orphanDependents !== undefined && orphanDependents !== null && typeof orphanDependents !== 'boolean')
    return wrongType('orphanDependents', orphanDependents, 'bool')
  if (!isText(propagationPolicy)) return wrongType('propagationPolicy', propagationPolicy, 'v1.DeletionPropagation')
  if (dryRun !== undefined && dryRun !== null && !Array.isArray(dryRun)) return wrongType('dryRun', dryRun, '[]string')
  if (preconditions === undefined || preconditions === null) return undefined
  if (!isRecord(preconditions)) return wrongType('preconditions', preconditions, 'v1.Preconditions')
  if (!isText(preconditions.uid)) return wrongType('preconditions.uid', preconditions.uid, 'types.UID')
  return isText(preconditions.resourceVersion)
    ? undefined
    : wrongType('preconditions.resourceVersion', preconditions.resourceVersion, 'string')
}
