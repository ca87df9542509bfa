/** Validates names of devices and related objects. */
import { dnsLabelProblems, type FieldError, invalid, required, subdomainProblems, tooLong } from '@capstan/kube'
import { problems, subdomain } from '../checks.ts'
import { csiDriverNameErrors } from '../storage/csi-node.ts'

/** Maximum length of the name of a counter, and of the domain of a qualified name. */
export const MaxName = 63
const MaxId = 32
const MaxPoolName = 253
/** Maximum length of `domain/name`. */
export const MaxQualifiedName = MaxName + 1 + MaxId

/** Validates names of requests, devices, counter sets and counters. */
export const labelErrors = (field: string, name: string): FieldError[] => problems(field, name, dnsLabelProblems(name))

export const requiredLabelErrors = (field: string, name: string): FieldError[] =>
  name === '' ? [required(field)] : labelErrors(field, name)

export const classNameErrors = (field: string, name: string): FieldError[] =>
  name === '' ? [required(field)] : subdomain(field, name)

/** Names of drivers follow the rules for CSI drivers. */
export const driverErrors = csiDriverNameErrors

/** Validates the name of a pool: subdomains separated by slashes. */
export function poolErrors(field: string, name: string): FieldError[] {
  if (name === '') return [required(field)]
  return [
    ...(name.length > MaxPoolName ? [tooLong(field, MaxPoolName)] : []),
    ...name.split('/').flatMap((part) => problems(field, part, subdomainProblems(part))),
  ]
}

/** Validates `name` or `domain/name`. As upstream, accepts every name with more than one slash. */
export function qualifiedNameErrors(field: string, name: string): FieldError[] {
  const [first = '', second, ...extraSegments] = name.split('/')
  if (second === undefined) return identifierErrors(field, first)
  if (extraSegments.length > 0) return []
  return [
    ...(first === '' ? [invalid(field, '', 'the domain must not be empty')] : driverErrors(field, first)),
    ...(second === '' ? [invalid(field, '', 'the name must not be empty')] : identifierErrors(field, second)),
  ]
}

export const fullyQualifiedNameErrors = (field: string, name: string): FieldError[] => [
  ...qualifiedNameErrors(field, name),
  ...(name.includes('/')
    ? []
    : [invalid(field, name, 'a fully qualified name must be a domain and a name separated by a slash')]),
]

const identifierText =
  "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')"

const identifierErrors = (field: string, id: string): FieldError[] => [
  ...(id.length > MaxId ? [tooLong(field, MaxId)] : []),
  ...(/^[A-Za-z_]\w*$/.test(id) ? [] : [invalid(field, id, identifierText)]),
]

/** Validates the id of a share of a device. */
export function uidErrors(field: string, uid: string): FieldError[] {
  const problem = uidProblem(uid)
  if (problem !== undefined) return [invalid(field, uid, `error validating uid: ${problem}`)]
  const text =
    'uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters'
  return uid.length === 36 && uid === uid.toLowerCase() ? [] : [invalid(field, uid, text)]
}

/** Returns the error text of github.com/google/uuid, or `undefined` for the four formats that it accepts. */
function uidProblem(uid: string): string | undefined {
  switch (uid.length) {
    case 32:
      return /^[0-9a-f]{32}$/i.test(uid) ? undefined : 'invalid UUID format'
    case 36:
      return formProblem(uid)
    case 38:
      return uid.startsWith('{') && uid.endsWith('}') ? formProblem(uid.slice(1, -1)) : 'invalid bracketed UUID format'
    case 45:
      return /^urn:uuid:/i.test(uid) ? formProblem(uid.slice(9)) : `invalid urn prefix: ${JSON.stringify(uid.slice(0, 9))}`
    default:
      return `invalid UUID length: ${uid.length}`
  }
}

const formProblem = (uid: string): string | undefined =>
  /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(uid) ? undefined : 'invalid UUID format'
