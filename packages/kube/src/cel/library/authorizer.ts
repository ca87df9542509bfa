/**
 * Permission checks in admission expressions: `authorizer.group('apps').resource('deployments').check('create').allowed()`.
 * Upstream: apiserver/pkg/cel/library/authz.go, v0.36.
 */
import type { Library } from '../signature.ts'
import { EvaluationError, Opaque } from '../value.ts'

/** A permission to check, for a resource or a path. */
export type PermissionQuery = {
  readonly verb: string
  readonly serviceAccount?: { readonly namespace: string; readonly name: string }
} & (
  | { readonly path: string }
  | {
      readonly group: string
      readonly resource: string
      readonly subresource?: string
      readonly namespace?: string
      readonly name?: string
    }
)

/** Checks a permission of the requesting user, or of the named service account. */
export type CheckPermission = (query: PermissionQuery) => { readonly allowed: boolean; readonly reason: string }

type CheckAttributes = { readonly [member: string]: string | { readonly namespace: string; readonly name: string } }

/** A permission check under construction. */
class PendingCheck extends Opaque {
  readonly type: string
  readonly checkPermission: CheckPermission
  readonly attributes: CheckAttributes

  constructor(type: string, checkPermission: CheckPermission, attributes: CheckAttributes) {
    super()
    this.type = `kubernetes.authorization.${type}`
    this.checkPermission = checkPermission
    this.attributes = attributes
  }
  equals(other: Opaque): boolean {
    return this === other
  }
}

class Decision extends Opaque {
  readonly type = 'kubernetes.authorization.Decision'
  readonly allowed: boolean
  readonly reason: string

  constructor({ allowed, reason }: ReturnType<CheckPermission>) {
    super()
    this.allowed = allowed
    this.reason = reason
  }
  equals(other: Opaque): boolean {
    return this === other
  }
}

/** Value of the variable `authorizer`. */
export const authorizerValue = (checkPermission: CheckPermission): Opaque => new PendingCheck('Authorizer', checkPermission, {})

/** Value of `authorizer.requestResource`: a check for the resource of the request, without a verb. */
export const requestResourceValue = (checkPermission: CheckPermission, attributes: CheckAttributes): Opaque =>
  new PendingCheck('ResourceCheck', checkPermission, attributes)

const extend =
  (type: string, member: string) =>
  ({ checkPermission, attributes }: PendingCheck, value: string): PendingCheck =>
    new PendingCheck(type, checkPermission, { ...attributes, [member]: value })

function ofServiceAccount({ checkPermission, attributes }: PendingCheck, namespace: string, name: string): PendingCheck {
  const isName = (text: string) => /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(text)
  if (!isName(namespace)) throw new EvaluationError(`Invalid service account namespace`)
  if (!isName(name)) throw new EvaluationError(`Invalid service account name`)
  return new PendingCheck('Authorizer', checkPermission, { ...attributes, serviceAccount: { namespace, name } })
}

const check = ({ checkPermission, attributes }: PendingCheck, verb: string): Decision =>
  new Decision(checkPermission({ ...attributes, verb } as PermissionQuery))

/** Ignores a selector, because no authorizer of the embedded API server uses selectors. */
const ignoreSelector = (pending: PendingCheck): PendingCheck => pending

export const authorizer: Library = {
  'Authorizer.path(string): PathCheck': extend('PathCheck', 'path'),
  'Authorizer.group(string): GroupCheck': extend('GroupCheck', 'group'),
  'Authorizer.serviceAccount(string, string): Authorizer': ofServiceAccount,
  'GroupCheck.resource(string): ResourceCheck': extend('ResourceCheck', 'resource'),
  'ResourceCheck.subresource(string): ResourceCheck': extend('ResourceCheck', 'subresource'),
  'ResourceCheck.namespace(string): ResourceCheck': extend('ResourceCheck', 'namespace'),
  'ResourceCheck.name(string): ResourceCheck': extend('ResourceCheck', 'name'),
  'ResourceCheck.fieldSelector(string): ResourceCheck': ignoreSelector,
  'ResourceCheck.labelSelector(string): ResourceCheck': ignoreSelector,
  'ResourceCheck.check(string): Decision': check,
  'PathCheck.check(string): Decision': check,
  'Decision.allowed(): bool': ({ allowed }: Decision) => allowed,
  'Decision.reason(): string': ({ reason }: Decision) => reason,
  'Decision.errored(): bool': () => false,
  'Decision.error(): string': () => '',
}
