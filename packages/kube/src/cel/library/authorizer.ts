/**
 * What expressions of admission ask about rights: `authorizer.group('apps').resource('deployments').check('create').allowed()`.
 * Upstream: apiserver/pkg/cel/library/authz.go, v0.36.
 */
import type { Library } from '../signature.ts'
import { EvaluationError, Opaque } from '../value.ts'

/** What is asked about: a resource, or a path. */
export type RightsQuestion = {
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

/** Checks a permission of the sender of the request, or of the named service account. */
export type CheckPermission = (question: RightsQuestion) => { readonly allowed: boolean; readonly reason: string }

type About = { readonly [member: string]: string | { readonly namespace: string; readonly name: string } }

/** A question that is being put together. */
class Asking extends Opaque {
  readonly type: string
  readonly ask: CheckPermission
  readonly about: About

  constructor(type: string, ask: CheckPermission, about: About) {
    super()
    this.type = `kubernetes.authorization.${type}`
    this.ask = ask
    this.about = about
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

export const authorizerValue = (ask: CheckPermission): Opaque => new Asking('Authorizer', ask, {})

/** The question about the resource of the request itself, for any verb. */
export const requestResourceValue = (ask: CheckPermission, about: About): Opaque => new Asking('ResourceCheck', ask, about)

const further =
  (type: string, member: string) =>
  ({ ask, about }: Asking, value: string): Asking =>
    new Asking(type, ask, { ...about, [member]: value })

function ofServiceAccount({ ask, about }: Asking, namespace: string, name: string): Asking {
  const isName = (text: string) => /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(text)
  if (!isName(namespace)) throw new EvaluationError(`Invalid service account namespace`)
  if (!isName(name)) throw new EvaluationError(`Invalid service account name`)
  return new Asking('Authorizer', ask, { ...about, serviceAccount: { namespace, name } })
}

const check = ({ ask, about }: Asking, verb: string): Decision => new Decision(ask({ ...about, verb } as RightsQuestion))

/** Selectors do not affect any authorizer here, so they are ignored. */
const unchanged = (asking: Asking): Asking => asking

export const authorizer: Library = {
  'Authorizer.path(string): PathCheck': further('PathCheck', 'path'),
  'Authorizer.group(string): GroupCheck': further('GroupCheck', 'group'),
  'Authorizer.serviceAccount(string, string): Authorizer': ofServiceAccount,
  'GroupCheck.resource(string): ResourceCheck': further('ResourceCheck', 'resource'),
  'ResourceCheck.subresource(string): ResourceCheck': further('ResourceCheck', 'subresource'),
  'ResourceCheck.namespace(string): ResourceCheck': further('ResourceCheck', 'namespace'),
  'ResourceCheck.name(string): ResourceCheck': further('ResourceCheck', 'name'),
  'ResourceCheck.fieldSelector(string): ResourceCheck': unchanged,
  'ResourceCheck.labelSelector(string): ResourceCheck': unchanged,
  'ResourceCheck.check(string): Decision': check,
  'PathCheck.check(string): Decision': check,
  'Decision.allowed(): bool': ({ allowed }: Decision) => allowed,
  'Decision.reason(): string': ({ reason }: Decision) => reason,
  'Decision.errored(): bool': () => false,
  'Decision.error(): string': () => '',
}
