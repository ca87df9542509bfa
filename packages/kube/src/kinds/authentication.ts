/** Reviews of a user's identity, and requests for tokens of service accounts. The server stores none of these objects. */
import { type FieldError, invalid } from '../errors.ts'
import { defineKind, type ObjectOf } from '../kind.ts'
import { type Infer, s } from '../schema.ts'
import { emptySpec } from './authorization.ts'

const group = 'authentication.k8s.io'
const version = 'v1'

const userInfo = s.object({
  username: s.string().optional(),
  uid: s.string().optional(),
  groups: s.list(s.string()).atomic().optional(),
  extra: s.map(s.list(s.string())).optional(),
})
export type UserInfo = Infer<typeof userInfo>

export const SelfSubjectReview = defineKind({
  group,
  version,
  kind: 'SelfSubjectReview',
  plural: 'selfsubjectreviews',
  scope: 'Cluster',
  statusSubresource: false,
  doc: 'Returns the user attributes of the requester.',
  status: s.object({ userInfo: userInfo.optional() }),
})
export type SelfSubjectReview = ObjectOf<typeof SelfSubjectReview>

export const TokenReview = defineKind({
  group,
  version,
  kind: 'TokenReview',
  plural: 'tokenreviews',
  scope: 'Cluster',
  statusSubresource: false,
  doc: 'Authenticates a token and returns its user.',
  spec: s.object({ token: s.string().optional(), audiences: s.list(s.string()).atomic().optional() }),
  default: emptySpec,
  status: s.object({
    authenticated: s.boolean().optional(),
    user: userInfo.optional(),
    audiences: s.list(s.string()).atomic().optional(),
    error: s.string().optional(),
  }),
})
export type TokenReview = ObjectOf<typeof TokenReview>

/** Request and response of the subresource `serviceaccounts/token`; not a resource of its own. */
export const TokenRequest = defineKind({
  group,
  version,
  kind: 'TokenRequest',
  plural: 'tokenrequests',
  scope: 'Namespaced',
  statusSubresource: false,
  doc: 'Requests a token of a service account.',
  spec: s.object({
    audiences: s.list(s.string()).atomic().optional(),
    expirationSeconds: s.int64().optional(),
    boundObjectRef: s
      .object({
        kind: s.string().optional(),
        apiVersion: s.string().optional(),
        name: s.string().optional(),
        uid: s.string().optional(),
      })
      .optional(),
  }),
  status: s.object({ token: s.string(), expirationTimestamp: s.timestamp() }),
  default(request) {
    emptySpec(request)
    request.spec.expirationSeconds ??= 3600
  },
  /** Upstream: pkg/apis/authentication/validation, ValidateTokenRequest. */
  validate({ spec }) {
    const errors: FieldError[] = []
    const { expirationSeconds: seconds = 0 } = spec
    const reject = (problem: string) => errors.push(invalid('spec.expirationSeconds', seconds, problem))
    if (seconds < 600) reject('may not specify a duration less than 10 minutes')
    if (seconds > 2 ** 32) reject('may not specify a duration larger than 2^32 seconds')
    return errors
  },
})
export type TokenRequest = ObjectOf<typeof TokenRequest>
