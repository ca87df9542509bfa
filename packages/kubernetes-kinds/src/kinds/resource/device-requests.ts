/** Validates the device requests, constraints and configurations of a claim, and sets defaults of the requests. */
import { type FieldError, invalid, notSupported, required } from '@capstan/kube'
import { nullIfNone } from '../go-nulls.ts'
import type {
  DeviceClaim,
  DeviceClaimConfiguration,
  DeviceConstraint,
  DeviceRequest,
  DeviceSubRequest,
  ExactDeviceRequest,
} from '../schemas/types.ts'
import { configurationErrors, MaxConfigurations } from './device-configuration.ts'
import { listErrors, setErrors } from './lists.ts'
import { classNameErrors, fullyQualifiedNameErrors, labelErrors } from './names.ts'
import { selectorErrors } from './selector.ts'
import { defaultTolerations, tolerationErrors } from './taints.ts'

const MaxRequests = 32
const MaxAlternatives = 8
const MaxConstraints = 32

/** Names of requests, each with the names of its subrequests. */
export type RequestNames = ReadonlyMap<string, readonly string[]>

export const requestNames = ({ requests }: DeviceClaim): RequestNames =>
  new Map((requests ?? []).map(({ name, firstAvailable = [] }) => [name, firstAvailable.map((alternative) => alternative.name)]))

/** Sets defaults of the requests of a claim. An absent or empty list `requests` becomes null, because the Go field has no `omitempty`. */
export function defaultRequests(claim: DeviceClaim): void {
  nullIfNone(claim, 'requests')
  for (const { exactly, firstAvailable = [] } of claim.requests ?? []) {
    for (const request of exactly ? [exactly, ...firstAvailable] : firstAvailable) {
      request.allocationMode ||= 'ExactCount'
      if (request.allocationMode === 'ExactCount') request.count ||= 1
      defaultTolerations(request.tolerations)
    }
  }
}

export function deviceClaimErrors(field: string, claim: DeviceClaim): FieldError[] {
  const names = requestNames(claim)
  return [
    ...setErrors(`${field}.requests`, claim.requests, MaxRequests, requestErrors, ({ name }) => name),
    ...listErrors(`${field}.constraints`, claim.constraints, MaxConstraints, (valuePath, constraint) =>
      constraintErrors(valuePath, constraint, names),
    ),
    ...listErrors(`${field}.config`, claim.config, MaxConfigurations, (valuePath, config) =>
      claimConfigurationErrors(valuePath, config, names),
    ),
  ]
}

function requestErrors(field: string, { name, exactly, firstAvailable = [] }: DeviceRequest): FieldError[] {
  const errors = labelErrors(`${field}.name`, name)
  const text = 'exactly one of `exactly` or `firstAvailable` is required'
  if (exactly && firstAvailable.length > 0) return [...errors, invalid(field, null, `${text}, but multiple fields are set`)]
  if (exactly) return [...errors, ...deviceRequestErrors(`${field}.exactly`, exactly)]
  if (firstAvailable.length === 0) return [...errors, required(field, text)]
  const alternativeErrors = (valuePath: string, alternative: DeviceSubRequest) => [
    ...labelErrors(`${valuePath}.name`, alternative.name),
    ...deviceRequestErrors(valuePath, alternative),
  ]
  return [
    ...errors,
    ...setErrors(`${field}.firstAvailable`, firstAvailable, MaxAlternatives, alternativeErrors, (subRequest) => subRequest.name),
  ]
}

const deviceRequestErrors = (field: string, request: ExactDeviceRequest | DeviceSubRequest): FieldError[] => [
  ...classNameErrors(`${field}.deviceClassName`, request.deviceClassName),
  ...selectorErrors(`${field}.selectors`, request.selectors),
  ...amountErrors(field, request),
  ...listErrors(`${field}.tolerations`, request.tolerations, undefined, tolerationErrors),
]

function amountErrors(
  field: string,
  { allocationMode: mode = '', count = 0 }: ExactDeviceRequest | DeviceSubRequest,
): FieldError[] {
  const valuePath = `${field}.count`
  switch (mode) {
    case 'All':
      return count === 0 ? [] : [invalid(valuePath, count, "must not be specified when allocationMode is 'All'")]
    case 'ExactCount':
      return count > 0 ? [] : [invalid(valuePath, count, 'must be greater than zero')]
    default:
      return [notSupported(`${field}.allocationMode`, mode, ['All', 'ExactCount'])]
  }
}

function constraintErrors(
  field: string,
  { requests, matchAttribute, distinctAttribute }: DeviceConstraint,
  names: RequestNames,
): FieldError[] {
  const errors = referencesErrors(`${field}.requests`, requests, names)
  if (matchAttribute !== undefined) return [...errors, ...fullyQualifiedNameErrors(`${field}.matchAttribute`, matchAttribute)]
  if (distinctAttribute !== undefined) {
    return [...errors, ...fullyQualifiedNameErrors(`${field}.distinctAttribute`, distinctAttribute)]
  }
  // As upstream, the text claims that multiple fields are set, although none is.
  const text = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
  return [...errors, required(field, text)]
}

/** Validates a configuration for some or all requests of a claim. */
export const claimConfigurationErrors = (field: string, config: DeviceClaimConfiguration, names: RequestNames): FieldError[] => [
  ...referencesErrors(`${field}.requests`, config.requests, names),
  ...configurationErrors(field, config),
]

const referencesErrors = (field: string, requests: readonly string[] | undefined, names: RequestNames): FieldError[] =>
  setErrors(
    field,
    requests,
    MaxRequests,
    (valuePath, name) => referenceErrors(valuePath, name, names),
    (name) => name,
  )

/** Validates a reference to a request of a claim: `request` or `request/subrequest`. */
export function referenceErrors(field: string, name: string, names: RequestNames): FieldError[] {
  const unknown = invalid(
    field,
    name,
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'",
  )
  const [request = '', alternative, ...extraSegments] = name.split('/')
  if (extraSegments.length > 0) return [unknown]
  const alternatives = names.get(request)
  const isKnown = alternatives !== undefined && (alternative === undefined || alternatives.includes(alternative))
  return [
    ...labelErrors(field, request),
    ...(alternative === undefined ? [] : labelErrors(field, alternative)),
    ...(isKnown ? [] : [unknown]),
  ]
}
