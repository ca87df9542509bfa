/**
 * Reviews: kinds whose objects are not stored, such as SelfSubjectReview, SubjectAccessReview and TokenReview. The response to a create
 * contains the result in the status of the object.
 */
import {
  badRequest,
  invalidObject,
  type KubeObject,
  listInPieces,
  LocalSubjectAccessReview,
  type ResourceAttributes as RequestedResource,
  resourceName,
  SelfSubjectAccessReview,
  SelfSubjectReview,
  SelfSubjectRulesReview,
  SubjectAccessReview,
  timestamp,
  TokenReview,
  type UnknownObject,
  type UserInfo,
} from '@capstan/kube'
import {
  type Attributes,
  type User,
  decode,
  draftOf,
  trackFields,
  type RequestContext,
  type ServerContext,
  writeContext,
} from '@capstan/apiserver/kinds'
import { aggregated } from '../auth/rbac.ts'

type Reviewer = (server: ServerContext, context: RequestContext, review: never) => object

const reviewers: { readonly [storage: string]: Reviewer } = {
  [resourceName(SelfSubjectAccessReview)]: ({ authorizer }, { caller }, { spec }: SelfSubjectAccessReview) =>
    authorizer.decide(attributesOf(caller, spec)),
  [resourceName(SubjectAccessReview)]: ({ authorizer }, _, { spec }: SubjectAccessReview) =>
    authorizer.decide(attributesOf(subjectOf(spec), spec)),
  [resourceName(LocalSubjectAccessReview)]: ({ authorizer }, _, { spec }: LocalSubjectAccessReview) =>
    authorizer.decide(attributesOf(subjectOf(spec), spec)),
  [resourceName(SelfSubjectRulesReview)]: rulesOf,
  [resourceName(SelfSubjectReview)]: (_, { caller }) => ({ userInfo: userInfoOf(caller) }),
  [resourceName(TokenReview)]: reviewToken,
}

export const isReview = ({ storage }: { readonly storage: string }): boolean => Object.hasOwn(reviewers, storage)

/** Returns a review with its result in the status. @throws StatusError BadRequest or Invalid */
export async function review(server: ServerContext, context: RequestContext): Promise<KubeObject> {
  const { info, request } = context
  const decoded = decode(context, draftOf(info, request.body), 'body')
  delete decoded.status
  const isSelfSubjectReview = info.storage === resourceName(SelfSubjectReview)
  const object = isSelfSubjectReview ? decoded : await trackFields(server, context, decoded, undefined)
  const errors = [
    ...info.structural.validate(object, undefined),
    ...(await listInPieces(server.clock, info.strategy.validate?.(object, undefined, writeContext(server, context)) ?? [])),
  ]
  // Upstream: the error of an access review names the group of the review, but not its kind.
  const { group } = info
  if (errors.length > 0) throw invalidObject(group === SubjectAccessReview.group ? { group, kind: '' } : info, '', errors)
  const status = reviewers[info.storage]!(server, context, object as never)
  // Upstream: only SelfSubjectReview has a creation time, and SelfSubjectRulesReview returns neither its metadata nor its spec.
  const isRulesReview = info.storage === resourceName(SelfSubjectRulesReview)
  const metadata = isSelfSubjectReview
    ? { creationTimestamp: timestamp(server.clock.now()) }
    : isRulesReview
      ? {}
      : object.metadata
  const spec = isRulesReview ? { spec: {} } : {}
  return { ...object, ...spec, metadata, status: statusOf(status) } as UnknownObject
}

/** Omits an empty reason from the status. */
const statusOf = (status: object): object =>
  Object.fromEntries(Object.entries(status).filter(([name, value]) => name !== 'reason' || value !== ''))

interface RequestedAccess {
  readonly resourceAttributes?: RequestedResource
  readonly nonResourceAttributes?: { readonly path?: string; readonly verb?: string }
}

function attributesOf(
  user: User,
  { resourceAttributes: resource, nonResourceAttributes: nonResource }: RequestedAccess,
): Attributes {
  if (resource) {
    const { verb = '', group = '', resource: plural = '', subresource, namespace, name } = resource
    return { kind: 'resource', user, verb, group, resource: plural, subresource, namespace, name }
  }
  return { kind: 'path', user, verb: nonResource?.verb ?? '', path: nonResource?.path ?? '' }
}

const subjectOf = ({ user = '', groups = [], uid }: SubjectAccessReview['spec']): User => ({
  name: user,
  groups,
  ...(uid === undefined ? {} : { uid }),
})

function rulesOf(
  { authorizer }: ServerContext,
  { caller }: RequestContext,
  { spec }: SelfSubjectRulesReview,
): NonNullable<SelfSubjectRulesReview['status']> {
  const { namespace = '' } = spec
  if (namespace === '') throw badRequest('no namespace on request')
  const { rules, errors } = authorizer.rulesFor(caller, namespace)
  return {
    resourceRules: rules
      .filter(({ resources = [] }) => resources.length > 0)
      .map(({ verbs, apiGroups = [], resources = [], resourceNames = [] }) => ({
        verbs,
        apiGroups,
        resources,
        ...(resourceNames.length === 0 ? {} : { resourceNames }),
      })),
    nonResourceRules: rules
      .filter(({ nonResourceURLs = [] }) => nonResourceURLs.length > 0)
      .map(({ verbs, nonResourceURLs = [] }) => ({ verbs, nonResourceURLs })),
    incomplete: errors.length > 0,
    ...(errors.length === 0 ? {} : { evaluationError: aggregated(errors) }),
  }
}

function reviewToken(
  { authenticateToken, apiAudiences }: ServerContext,
  _: RequestContext,
  { spec }: TokenReview,
): NonNullable<TokenReview['status']> {
  const { token = '', audiences = [] } = spec
  if (token === '') throw badRequest('token is required for TokenReview in authentication')
  const result = authenticateToken(token, audiences.length === 0 ? apiAudiences : audiences)
  if (result.kind === 'known') {
    return {
      authenticated: true,
      user: userInfoOf(result.user),
      ...(result.audiences.length === 0 ? {} : { audiences: [...result.audiences] }),
    }
  }
  // Upstream: every token authenticator adds its own error text.
  return { user: {}, error: aggregated(['invalid bearer token', ...(result.kind === 'rejected' ? [result.reason] : [])]) }
}

const userInfoOf = ({ name, uid, groups, extra = {} }: User): UserInfo => ({
  username: name,
  ...(uid === undefined || uid === '' ? {} : { uid }),
  ...(groups.length === 0 ? {} : { groups: [...groups] }),
  ...(Object.keys(extra).length === 0
    ? {}
    : { extra: Object.fromEntries(Object.entries(extra).map(([key, values]) => [key, [...values]])) }),
})
