/** The fields of ValidatingAdmissionPolicy and its binding that the server evaluates. Upstream: admissionregistration.k8s.io/v1. */
import type { KubeObject, LabelSelector } from '@capstan/kube'

export interface ValidatingAdmissionPolicy extends KubeObject {
  readonly spec: PolicySpec
}

export interface PolicySpec {
  readonly failurePolicy?: string
  readonly matchConditions?: readonly { readonly name: string; readonly expression: string }[]
  readonly matchConstraints?: MatchResources
  readonly paramKind?: { readonly apiVersion?: string; readonly kind?: string }
  readonly validations?: readonly PolicyValidation[]
  readonly variables?: readonly { readonly name: string; readonly expression: string }[]
}

interface PolicyValidation {
  readonly expression: string
  readonly message?: string
  readonly messageExpression?: string
  readonly reason?: string
}

export interface ValidatingAdmissionPolicyBinding extends KubeObject {
  readonly spec: BindingSpec
}

export interface BindingSpec {
  readonly policyName: string
  readonly matchResources?: MatchResources
  readonly paramRef?: ParamRef
  readonly validationActions?: readonly string[]
}

export interface ParamRef {
  readonly name?: string
  readonly namespace?: string
  readonly parameterNotFoundAction?: string
  readonly selector?: LabelSelector
}

export interface MatchResources {
  readonly excludeResourceRules?: readonly NamedRuleWithOperations[]
  readonly matchPolicy?: string
  readonly namespaceSelector?: LabelSelector
  readonly objectSelector?: LabelSelector
  readonly resourceRules?: readonly NamedRuleWithOperations[]
}

export interface NamedRuleWithOperations {
  readonly apiGroups?: readonly string[]
  readonly apiVersions?: readonly string[]
  readonly operations?: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly resources?: readonly string[]
  readonly scope?: string
}
