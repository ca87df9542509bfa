/**
 * Who may do what, asked before anything else is looked at: an object that somebody may not see is not there for them, nor is it
 * missing. Upstream: k8s.io/apiserver/pkg/authorization.
 */
import { type NamedResource, resourceName, type StatusDetails, StatusError } from '@capstan/kube'
import type { User } from '../engine.ts'
import type { Rules } from './rules.ts'

/** What somebody is about to do: to a resource, or to a path that is none. */
export type Attributes = ResourceAttributes | PathAttributes

export interface ResourceAttributes {
  readonly kind: 'resource'
  readonly user: User
  readonly verb: string
  readonly group: string
  readonly resource: string
  readonly subresource?: string | undefined
  /** Absent at the scope of the cluster. */
  readonly namespace?: string | undefined
  readonly name?: string | undefined
}

export interface PathAttributes {
  readonly kind: 'path'
  readonly user: User
  /** The method, in lower case. */
  readonly verb: string
  readonly path: string
}

export interface Decision {
  readonly allowed: boolean
  /** For those who ask why; empty where there is nothing to say. */
  readonly reason: string
}

export interface Authorizer {
  readonly modes: readonly AuthorizationMode[]
  decide(attributes: Attributes): Decision
  /** Everything that somebody may do in a namespace, as far as it is known. */
  rulesFor(user: User, namespace: string): Rules
}

/** `Node` allows nothing beside: what it would give to kubelets alone is given to nobody. */
export const AuthorizationModes = ['AlwaysAllow', 'AlwaysDeny', 'Node', 'RBAC'] as const
export type AuthorizationMode = (typeof AuthorizationModes)[number]

/** Whoever is in it may do everything, whatever the modes. */
export const superusers = 'system:masters'

export const isSuperuser = ({ groups }: Pick<User, 'groups'>): boolean => groups.includes(superusers)

const everything: Rules = {
  rules: [
    { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
    { verbs: ['*'], nonResourceURLs: ['*'] },
  ],
  errors: [],
}

/** The modes in order: the first that allows decides. */
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
      const found = modes.map((mode) =>
        mode === 'RBAC' ? rbac.rulesFor(user, namespace) : mode === 'AlwaysAllow' ? everything : { rules: [], errors: [] },
      )
      return { rules: found.flatMap(({ rules }) => rules), errors: found.flatMap(({ errors }) => errors) }
    },
  }
}

/** @throws StatusError Forbidden */
export function authorize(authorizer: Authorizer, attributes: Attributes): void {
  const { allowed, reason } = authorizer.decide(attributes)
  if (!allowed) throw refusalOf(attributes, reason)
}

/** Upstream: endpoints/handlers/responsewriters, ForbiddenStatusError. */
export function refusalOf(attributes: Attributes, reason: string): StatusError {
  const why = reason === '' ? sentenceOf(attributes) : `${sentenceOf(attributes)}: ${reason}`
  if (attributes.kind === 'path') return new StatusError('Forbidden', `forbidden: ${why}`, { details: {} })
  return forbiddenTo({ group: attributes.group, plural: attributes.resource }, attributes.name, why)
}

export function forbiddenTo(resource: NamedResource, name: string | undefined, why: string): StatusError {
  const { group, plural } = resource
  const details: StatusDetails = { ...(name ? { name } : {}), ...(group === '' ? {} : { group }), kind: plural }
  const head = name ? `${resourceName(resource)} ${JSON.stringify(name)}` : resourceName(resource)
  return new StatusError('Forbidden', `${head} is forbidden: ${why}`, { details })
}

function sentenceOf(attributes: Attributes): string {
  const who = `User ${JSON.stringify(attributes.user.name)} cannot ${attributes.verb}`
  if (attributes.kind === 'path') return `${who} path ${JSON.stringify(attributes.path)}`
  const { group, resource, subresource, namespace } = attributes
  const what = subresource ? `${resource}/${subresource}` : resource
  const where = namespace ? `in the namespace ${JSON.stringify(namespace)}` : 'at the cluster scope'
  return `${who} resource ${JSON.stringify(what)} in API group ${JSON.stringify(group)} ${where}`
}
