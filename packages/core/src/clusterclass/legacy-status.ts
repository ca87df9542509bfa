import { legacyFalse, legacyTrue, legacyUnknown, type NewCondition, type NewLegacyCondition } from '@capstan/kube'

/** Types of the v1beta1 conditions that the ClusterClass controller owns. */
export const OwnedLegacyConditions = ['RefVersionsUpToDate', 'VariablesReconciled']

/**
 * Converts the conditions of a ClusterClass to the v1beta1 form; omits those without such a form. Pure. Upstream:
 * clusterclass_controller_status.go, v1.14.
 */
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
