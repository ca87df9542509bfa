/** Review kinds and TokenRequest, which are not stored. */
import {
  LocalSubjectAccessReview,
  SelfSubjectAccessReview,
  SelfSubjectReview,
  SelfSubjectRulesReview,
  SubjectAccessReview,
  TokenRequest,
  TokenReview,
} from '@capstan/kube'
import { declaredIn, type KindTable } from './builtin-kind.ts'

/** The resources of `authentication.k8s.io/v1`. */
export const authentication: KindTable = {
  selfsubjectreviews: { ...declaredIn(SelfSubjectReview), schema: SelfSubjectReview.schema },
  tokenreviews: { ...declaredIn(TokenReview), schema: TokenReview.schema },
}

/** The resources of `authorization.k8s.io/v1`. */
export const authorization: KindTable = {
  localsubjectaccessreviews: { ...declaredIn(LocalSubjectAccessReview), schema: LocalSubjectAccessReview.schema },
  selfsubjectaccessreviews: { ...declaredIn(SelfSubjectAccessReview), schema: SelfSubjectAccessReview.schema },
  selfsubjectrulesreviews: { ...declaredIn(SelfSubjectRulesReview), schema: SelfSubjectRulesReview.schema },
  subjectaccessreviews: { ...declaredIn(SubjectAccessReview), schema: SubjectAccessReview.schema },
}

/** TokenRequest, the kind of the subresource `token` of ServiceAccounts. */
export const tokenRequests = { ...declaredIn(TokenRequest), schema: TokenRequest.schema }
