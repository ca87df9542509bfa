/** Questions that are asked by creating an object which is not stored: who am I, may I, whose token is this. */
import {
  badRequest,
  invalidObject,
  type KubeObject,
  LocalSubjectAccessReview,
  type ResourceAttributes as AskedResource,
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
import type { Attributes } from '../auth/authorizer.ts'
import { aggregated } from '../auth/rbac.ts'
import type { User } from '../engine.ts'
import { decode, draftOf } from './decode.ts'
import { trackFields } from './managed-fields.ts'
import { type Call, type Plane, writeContext } from './plane.ts'

type Answer = (plane: Plane, call: Call, review: never) => object

const answers: { readonly [storage: string]: Answer } = {
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

export const isReview = ({ storage }: { readonly storage: string }): boolean => Object.hasOwn(answers, storage)

/** @throws StatusError BadRequest or Invalid */
export async function review(plane: Plane, call: Call): Promise<KubeObject> {
  const { definition, request } = call
  const decoded = decode(call, draftOf(definition, request.body), 'body')
  delete decoded.status
  const isAboutSelf = definition.storage === resourceName(SelfSubjectReview)
  const object = isAboutSelf ? decoded : await trackFields(plane, call, decoded, undefined)
  const errors = [
    ...definition.structural.validate(object, undefined),
    ...(definition.validate?.(object, undefined, writeContext(plane, call)) ?? []),
  ]
  // Upstream: refusals of access reviews name their group alone.
  const { group } = definition
  if (errors.length > 0) throw invalidObject(group === SubjectAccessReview.group ? { group, kind: '' } : definition, '', errors)
  const status = answers[definition.storage]!(plane, call, object as never)
  // Upstream, thing by thing: only who one is has a time, and what rules were asked for is not repeated.
  const isAboutRules = definition.storage === resourceName(SelfSubjectRulesReview)
  const metadata = isAboutSelf ? { creationTimestamp: timestamp(plane.clock.now()) } : isAboutRules ? {} : object.metadata
  const spec = isAboutRules ? { spec: {} } : {}
  return { ...object, ...spec, metadata, status: statusOf(status) } as UnknownObject
}

/** A decision is shown without the reason that it does not have. */
const statusOf = (status: object): object =>
  Object.fromEntries(Object.entries(status).filter(([name, value]) => name !== 'reason' || value !== ''))

interface Asked {
  readonly resourceAttributes?: AskedResource
  readonly nonResourceAttributes?: { readonly path?: string; readonly verb?: string }
}

function attributesOf(user: User, { resourceAttributes: resource, nonResourceAttributes: path }: Asked): Attributes {
  if (resource) {
    const { verb = '', group = '', resource: plural = '', subresource, namespace, name } = resource
    return { kind: 'resource', user, verb, group, resource: plural, subresource, namespace, name }
  }
  return { kind: 'path', user, verb: path?.verb ?? '', path: path?.path ?? '' }
}

const subjectOf = ({ user = '', groups = [], uid }: SubjectAccessReview['spec']): User => ({
  name: user,
  groups,
  ...(uid === undefined ? {} : { uid }),
})

function rulesOf(
  { authorizer }: Plane,
  { caller }: Call,
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
  { authenticateToken, apiAudiences }: Plane,
  _: Call,
  { spec }: TokenReview,
): NonNullable<TokenReview['status']> {
  const { token = '', audiences = [] } = spec
  if (token === '') throw badRequest('token is required for TokenReview in authentication')
  const found = authenticateToken(token, audiences.length === 0 ? apiAudiences : audiences)
  if (found.kind === 'known') {
    return {
      authenticated: true,
      user: userInfoOf(found.user),
      ...(found.audiences.length === 0 ? {} : { audiences: [...found.audiences] }),
    }
  }
  // Upstream: whoever looks after tokens says so, each in its own words.
  return { user: {}, error: aggregated(['invalid bearer token', ...(found.kind === 'refused' ? [found.why] : [])]) }
}

const userInfoOf = ({ name, uid, groups, extra = {} }: User): UserInfo => ({
  username: name,
  ...(uid === undefined || uid === '' ? {} : { uid }),
  ...(groups.length === 0 ? {} : { groups: [...groups] }),
  ...(Object.keys(extra).length === 0
    ? {}
    : { extra: Object.fromEntries(Object.entries(extra).map(([key, values]) => [key, [...values]])) }),
})
