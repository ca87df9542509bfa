/** Finds the forbidden requests in an audit log of kube-apiserver, and the permissions that no request used. */
import type { PolicyRule } from '@capstan/kube'

/** Fields of an audit event that suites and benchmarks read. */
export interface AuditEvent {
  readonly user: { readonly username: string; readonly extra?: { readonly [name: string]: readonly string[] } }
  /** Time at which the response was complete. */
  readonly stageTimestamp: string
  readonly userAgent?: string
  readonly verb: string
  readonly objectRef?: {
    readonly apiGroup?: string
    readonly resource?: string
    readonly subresource?: string
    readonly namespace?: string
    readonly name?: string
  }
  readonly requestURI: string
  readonly responseStatus?: { readonly code?: number; readonly message?: string }
  readonly annotations?: { readonly [name: string]: string }
}

/** Returns an audit policy that logs each request of these users once, when its response is complete, and without bodies. */
export const auditPolicy = (users: readonly string[]): object => ({
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['RequestReceived', 'ResponseStarted', 'Panic'],
  rules: [{ level: 'Metadata', users }, { level: 'None' }],
})

/** Parses an audit log, which has one event in each line. */
export const readAudit = (text: string): AuditEvent[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as AuditEvent)

/** Returns a text for each request with status 403 or a negative decision of the authorizer, without duplicates. */
export function forbiddenRequests(events: readonly AuditEvent[]): string[] {
  const rejected = events.filter(
    ({ responseStatus, annotations }) =>
      responseStatus?.code === 403 || annotations?.['authorization.k8s.io/decision'] === 'forbid',
  )
  return [...new Set(rejected.map(textOf))]
}

const textOf = ({ user, verb, objectRef, requestURI, responseStatus }: AuditEvent): string =>
  `${user.username} ${verb} ${objectRef?.resource ?? requestURI}${objectRef?.subresource ? `/${objectRef.subresource}` : ''} ` +
  `${objectRef?.namespace ?? ''}/${objectRef?.name ?? ''}: ${responseStatus?.message ?? ''}`

/** Rules of one role, bound to a user in the whole cluster or in one namespace. */
export interface Grant {
  readonly user: string
  readonly role: string
  /** Namespace of the binding. Absent if the role is bound in the whole cluster. */
  readonly namespace?: string
  readonly rules: readonly PolicyRule[]
}

/** A single permission of a rule: one verb on one resource, limited to one object name if the rule has names. */
export interface Permission {
  readonly role: string
  readonly group: string
  /** The resource, with its subresource as in a rule: `machines/status`. */
  readonly resource: string
  readonly name?: string
  readonly verb: string
}

export const permissionText = ({ role, group, resource, name, verb }: Permission): string =>
  `${role}: ${verb} ${resource}${group === '' ? '' : `.${group}`}${name === undefined ? '' : ` ${name}`}`

/** Returns the granted permissions that no request used. */
export function unusedPermissions(grants: readonly Grant[], events: readonly AuditEvent[]): Permission[] {
  const used = new Map<string, AuditEvent[]>()
  const id = (user: string, group: string, verb: string) => `${user} ${group} ${verb}`
  for (const event of events) {
    // Server-side apply of a new object also needs the permission to create it.
    const verbs = event.verb === 'patch' && event.responseStatus?.code === 201 ? ['patch', 'create'] : [event.verb]
    for (const verb of verbs) {
      const key = id(event.user.username, event.objectRef?.apiGroup ?? '', verb)
      used.set(key, [...(used.get(key) ?? []), event])
    }
  }
  return grants.flatMap(({ user, role, namespace, rules }) =>
    rules.flatMap((rule) =>
      permissionsOf(role, rule).filter(({ group, resource, name, verb }) => {
        const isUse = ({ objectRef = {} }: AuditEvent) => {
          const requested = objectRef.subresource ? `${objectRef.resource}/${objectRef.subresource}` : objectRef.resource
          if (resource !== '*' && requested !== resource) return false
          if (namespace !== undefined && objectRef.namespace !== namespace) return false
          return name === undefined || objectRef.name === name
        }
        return !(used.get(id(user, group, verb)) ?? []).some(isUse)
      }),
    ),
  )
}

const permissionsOf = (role: string, { apiGroups = [], resources = [], verbs, resourceNames }: PolicyRule): Permission[] =>
  apiGroups.flatMap((group) =>
    resources.flatMap((resource) =>
      verbs.flatMap((verb): Permission[] =>
        resourceNames ? resourceNames.map((name) => ({ role, group, resource, name, verb })) : [{ role, group, resource, verb }],
      ),
    ),
  )
