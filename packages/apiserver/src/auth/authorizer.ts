/** Authorizes requests before the object is looked up, so that a client without permission cannot find out which objects exist. */
import { type NamedResource, resourceName, type StatusDetails, StatusError } from '@capstan/kube'
import type { User } from './user.ts'
import type { Rules } from './rules.ts'

/** Attributes of a request to authorize, which is for a resource or for a non-resource path. */
export type Attributes = ResourceAttributes | PathAttributes

export interface ResourceAttributes {
  readonly kind: 'resource'
  readonly user: User
  readonly verb: string
  readonly group: string
  readonly resource: string
  readonly subresource?: string | undefined
  /** Absent for requests at the cluster scope. A request for one Namespace has the name of that Namespace here. */
  readonly namespace?: string | undefined
  readonly name?: string | undefined
}

export interface PathAttributes {
  readonly kind: 'path'
  readonly user: User
  /** The HTTP method in lower case, or the verb of a permission check, such as a SubjectAccessReview. */
  readonly verb: string
  readonly path: string
}

export interface Decision {
  readonly allowed: boolean
  /** Reason of the decision; may be empty. */
  readonly reason: string
}

export interface Authorizer {
  readonly modes: readonly AuthorizationMode[]
  decide(attributes: Attributes): Decision
  /** Returns all rules that apply to a user in a namespace. The rules are incomplete when `errors` is not empty. */
  rulesFor(user: User, namespace: string): Rules
}

/**
 * Authorization modes of kube-apiserver that this server accepts. `Node` allows no request: no user gets the permissions that upstream gives
 * only to kubelets.
 */
export const AuthorizationModes = ['AlwaysAllow', 'AlwaysDeny', 'Node', 'RBAC'] as const
export type AuthorizationMode = (typeof AuthorizationModes)[number]

/** Group whose members are always allowed, in every mode. */
export const superusers = 'system:masters'

export const isSuperuser = ({ groups }: Pick<User, 'groups'>): boolean => groups.includes(superusers)

const allRules: Rules = {
  rules: [
    { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
    { verbs: ['*'], nonResourceURLs: ['*'] },
  ],
  errors: [],
}

/** Combines the modes in order: the first mode that allows a request decides. Superusers are always allowed. */
export function authorizerOf(modes: readonly AuthorizationMode[], rbac: Pick<Authorizer, 'decide' | 'rulesFor'>): Authorizer {
  return {
    modes,
    decide(attributes) {
      if (isSuperuser(attributes.user)) return { allowed: true, reason: '' }
      const reasons: string[] = []
      for (const mode of modes) {
        const decision =
          mode === 'RBAC'
            ? rbac.decide(attributes)
            : { allowed: mode === 'AlwaysAllow', reason: mode === 'AlwaysDeny' ? 'Everything is forbidden.' : '' }
        if (decision.allowed) return decision
        if (decision.reason !== '') reasons.push(decision.reason)
      }
      return { allowed: false, reason: reasons.join('\n') }
    },
    rulesFor(user, namespace) {
      const rulesByMode = modes.map((mode) =>
        mode === 'RBAC' ? rbac.rulesFor(user, namespace) : mode === 'AlwaysAllow' ? allRules : { rules: [], errors: [] },
      )
      return { rules: rulesByMode.flatMap(({ rules }) => rules), errors: rulesByMode.flatMap(({ errors }) => errors) }
    },
  }
}

/** @throws StatusError Forbidden when the request is not allowed */
export function authorize(authorizer: Authorizer, attributes: Attributes): void {
  const { allowed, reason } = authorizer.decide(attributes)
  if (!allowed) throw denialOf(attributes, reason)
}

/** Error for a request that is not allowed. Upstream: endpoints/handlers/responsewriters, ForbiddenStatusError. */
export function denialOf(attributes: Attributes, reason: string): StatusError {
  const explanation = reason === '' ? sentenceOf(attributes) : `${sentenceOf(attributes)}: ${reason}`
  if (attributes.kind === 'path') return new StatusError('Forbidden', `forbidden: ${explanation}`, { details: {} })
  return forbiddenTo({ group: attributes.group, plural: attributes.resource }, attributes.name, explanation)
}

/** Error `RESOURCE "NAME" is forbidden: REASON`; without a name, `RESOURCE is forbidden: REASON`. */
export function forbiddenTo(resource: NamedResource, name: string | undefined, reason: string): StatusError {
  const { group, plural } = resource
  const details: StatusDetails = { ...(name ? { name } : {}), ...(group === '' ? {} : { group }), kind: plural }
  const head = name ? `${resourceName(resource)} ${JSON.stringify(name)}` : resourceName(resource)
  return new StatusError('Forbidden', `${head} is forbidden: ${reason}`, { details })
}

function sentenceOf(attributes: Attributes): string {
  const userAndVerb = `User ${JSON.stringify(attributes.user.name)} cannot ${attributes.verb}`
  if (attributes.kind === 'path') return `${userAndVerb} path ${JSON.stringify(attributes.path)}`
  const { group, resource, subresource, namespace } = attributes
  const fullResource = subresource ? `${resource}/${subresource}` : resource
  const where = namespace ? `in the namespace ${JSON.stringify(namespace)}` : 'at the cluster scope'
  return `${userAndVerb} resource ${JSON.stringify(fullResource)} in API group ${JSON.stringify(group)} ${where}`
}
