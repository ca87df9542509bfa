/** The condition ResourcesApplied in the forms of v1beta2 and v1beta1. Pure. Upstream: clusterresourceset_controller.go, v1.14. */
import { ClusterResourceSetConditions } from '@capstan/api'
import { legacyFalse, legacyTrue, type Severity } from '@capstan/kube'
import { SeeLogs } from '../see-logs.ts'
import type { AppliedReport } from './scope.ts'

const { ResourcesApplied } = ClusterResourceSetConditions

export const applied: AppliedReport = { condition: ResourcesApplied.true('Applied'), legacy: legacyTrue(ResourcesApplied.type) }

export const notApplied = (message: string): AppliedReport => ({
  condition: ResourcesApplied.false('NotApplied', 'Failed to apply ClusterResourceSet resources to Cluster'),
  legacy: legacyFalse(ResourcesApplied.type, 'ApplyFailed', 'Warning', message),
})

export const wrongSecretType = (name: string): AppliedReport => ({
  condition: ResourcesApplied.false('WrongSecretType', `Secret type of resource ${name} is not supported`),
  legacy: legacyFalse(ResourcesApplied.type, 'WrongSecretType', 'Warning', UnsupportedSecretType),
})

export const UnsupportedSecretType = 'unsupported secret type'

type InternalReason = 'ClusterMatchFailed' | 'RetrievingResourceFailed' | 'RemoteClusterClientFailed'

export const internalError = (reason: InternalReason, message: string, severity: Severity = 'Warning'): AppliedReport => ({
  condition: ResourcesApplied.false('InternalError', SeeLogs),
  legacy: legacyFalse(ResourcesApplied.type, reason, severity, message),
})
