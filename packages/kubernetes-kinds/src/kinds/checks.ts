/**
 * Checks of field values, for many kinds. A check returns the errors of a value; the list is empty for a valid value. Functions named
 * `…Problems` return error texts without the field. The texts are upstream's, most of them from k8s.io/apimachinery/pkg/util/validation
 * (v0.36).
 */
import { isIP } from 'node:net'
import {
  appendAll,
  compareQuantities,
  dnsLabelProblems,
  equal,
  type FieldError,
  invalid,
  labelKeyProblems,
  labelValueProblems,
  notSupported,
  parseQuantity,
  qualifiedNameProblems,
  required,
  subdomainProblems,
} from '@capstan/kube'
import type { LabelSelector } from './schemas/types.ts'

/** Converts error texts about a value to errors of the field. */
export const problems = (field: string, value: unknown, texts: readonly string[]): FieldError[] =>
  texts.map((text) => invalid(field, value, text))

/** Returns the error for a name that refers to nothing, such as the name of a volume that the pod does not have. */
export const missing = (field: string, value: unknown, detail = ''): FieldError => ({
  type: 'FieldValueNotFound',
  field,
  text: `Not found: ${JSON.stringify(value)}${detail === '' ? '' : `: ${detail}`}`,
})

/** Returns the error for a value outside of a fixed set. An absent value counts as the empty string. */
export const oneOf = (field: string, value: string | undefined, supported: readonly string[]): FieldError[] =>
  supported.includes(value ?? '') ? [] : [notSupported(field, value ?? '', supported)]

/** Like `oneOf`, but the error for an absent or empty value is `Required value`. */
export const requiredOneOf = (field: string, value: string | undefined, supported: readonly string[]): FieldError[] =>
  value ? oneOf(field, value, supported) : [required(field)]

export const positive = (field: string, value: number | undefined): FieldError[] =>
  (value ?? 0) <= 0 ? [invalid(field, value ?? 0, 'must be greater than zero')] : []

export const inRange = (field: string, value: number, low: number, high: number): FieldError[] =>
  value < low || value > high ? [invalid(field, value, `must be between ${low} and ${high}, inclusive`)] : []

export const dnsLabel = (field: string, value: string): FieldError[] => problems(field, value, dnsLabelProblems(value))
export const subdomain = (field: string, value: string): FieldError[] => problems(field, value, subdomainProblems(value))
export const qualifiedName = (field: string, value: string): FieldError[] => problems(field, value, qualifiedNameProblems(value))

export const portNumber = (field: string, value: number): FieldError[] => inRange(field, value, 1, 65535)

/** Validates the name of a port. Upstream: IsValidPortName. */
export function portNameProblems(name: string): string[] {
  const texts: string[] = []
  if (name.length > 15) texts.push('must be no more than 15 characters')
  if (!/^[-a-z0-9]+$/.test(name)) texts.push('must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)')
  if (!/[a-z]/.test(name)) texts.push('must contain at least one letter (a-z)')
  if (name.includes('--')) texts.push('must not contain consecutive hyphens')
  if (name.startsWith('-') || name.endsWith('-')) texts.push('must not begin or end with a hyphen')
  return texts
}

export const portNumberOrName = (field: string, value: number | string): FieldError[] =>
  typeof value === 'number' ? portNumber(field, value) : problems(field, value, portNameProblems(value))

const NotAnAddress = ['must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)']
/** Returns an error text for a text that is not an IP address. As upstream, an IPv6 address has no zone. */
export const ipAddressProblems = (value: string): readonly string[] =>
  isIP(value) === 0 || value.includes('%') ? NotAnAddress : []
export const ipAddress = (field: string, value: string): FieldError[] => problems(field, value, ipAddressProblems(value))

export const unchanged = (field: string, value: unknown, old: unknown): FieldError[] =>
  equal(value, old) ? [] : [invalid(field, value ?? null, 'field is immutable')]

/** Validates labels, and other maps with the syntax of labels. Upstream: ValidateLabels. */
export function labels(field: string, value: { readonly [key: string]: string } | undefined): FieldError[] {
  return Object.entries(value ?? {}).flatMap(([key, text]) => [
    ...problems(field, key, labelKeyProblems(key)),
    ...problems(field, text, labelValueProblems(text)),
  ])
}

/** Validates a label selector. Upstream: ValidateLabelSelector. */
export function labelSelector(field: string, selector: LabelSelector | undefined): FieldError[] {
  if (!selector) return []
  const errors = labels(`${field}.matchLabels`, selector.matchLabels)
  for (const [index, { key, operator, values = [] }] of (selector.matchExpressions ?? []).entries()) {
    const expressionPath = `${field}.matchExpressions[${index}]`
    if (operator === 'In' || operator === 'NotIn') {
      if (values.length === 0)
        errors.push(required(`${expressionPath}.values`, "must be specified when `operator` is 'In' or 'NotIn'"))
    } else if (operator === 'Exists' || operator === 'DoesNotExist') {
      if (values.length > 0) {
        errors.push({
          type: 'FieldValueForbidden',
          field: `${expressionPath}.values`,
          text: "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        })
      }
    } else errors.push(invalid(`${expressionPath}.operator`, operator, 'not a valid selector operator'))
    appendAll(errors, problems(`${expressionPath}.key`, key, labelKeyProblems(key)))
    for (const [valueIndex, value] of values.entries()) {
      appendAll(errors, problems(`${expressionPath}.values[${valueIndex}]`, value, labelValueProblems(value)))
    }
  }
  return errors
}

export const isEmptySelector = ({ matchLabels = {}, matchExpressions = [] }: LabelSelector): boolean =>
  Object.keys(matchLabels).length + matchExpressions.length === 0

/** Compares two quantities: returns a negative number if `a` is less than `b`, zero if they are equal, otherwise a positive number. */
export const compareAmounts = (a: string | number, b: string | number): number =>
  compareQuantities(parseQuantity(String(a)), parseQuantity(String(b)))

/** Requires a relative path without an element `..`. Upstream: validateLocalDescendingPath. */
export function descendingPath(field: string, path: string): FieldError[] {
  return [...(path.startsWith('/') ? [invalid(field, path, 'must be a relative path')] : []), ...noBacksteps(field, path)]
}

/** Reports whether a path has an element `..`. */
export const hasBackstep = (path: string): boolean => path.includes('..') && path.split('/').includes('..')

export const noBacksteps = (field: string, path: string): FieldError[] =>
  hasBackstep(path) ? [invalid(field, path, "must not contain '..'")] : []

/** Like `descendingPath`, but also rejects a path that begins with two dots. Upstream: ValidateLocalNonReservedPath. */
export function localPath(field: string, path: string): FieldError[] {
  const errors = descendingPath(field, path)
  // The kubelet reserves names that begin with two dots, such as `..data`. For `../`, descendingPath has already returned an error.
  if (path.startsWith('..') && !path.startsWith('../')) errors.push(invalid(field, path, "must not start with '..'"))
  return errors
}
