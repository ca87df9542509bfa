import { legacyFalse, legacyTrue, legacyUnknown, type NewCondition, type NewLegacyCondition } from '@capstan/kube'

/** Legacy conditions in which this controller's word counts. */
export const OwnedLegacyConditions = ['RefVersionsUpToDate', 'VariablesReconciled']

/** The conditions of a ClusterClass in the form of v1beta1, where there is one. Pure. Upstream: clusterclass_controller_status.go, v1.14. */
export function legacyConditions(conditions: readonly NewCondition[]): NewLegacyCondition[] {
  return conditions.flatMap(({ type, status, reason, message }) => {
    switch (type) {
      case 'RefVersionsUpToDate':
        if (status === 'True') return legacyTrue(type)
        return status === 'False'
          ? legacyFalse(type, 'OutdatedRefVersions', 'Warning', message)
          : legacyUnknown(type, reason, message)
      case 'VariablesReady': {
        const legacyType = 'VariablesReconciled'
        return status === 'True' ? legacyTrue(legacyType) : legacyFalse(legacyType, 'VariableDiscoveryFailed', 'Error', message)
      }
      default:
        return []
    }
  })
}
