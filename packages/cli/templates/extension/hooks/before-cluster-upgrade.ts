import { BeforeClusterUpgrade } from '@capstan/api'
import { holdFor, on, proceedNow } from '@capstan/extension'

/** Blocks the start of an upgrade while the Cluster has the annotation that is named by the setting `freezeAnnotation`. */
export const beforeClusterUpgrade = on(BeforeClusterUpgrade, { name: 'before-cluster-upgrade' }, ({ request, settings }) => {
  const { freezeAnnotation = '' } = settings
  const { annotations = {} } = request.cluster.metadata
  if (freezeAnnotation === '' || !(freezeAnnotation in annotations)) return proceedNow()
  return holdFor(60, `not upgraded to ${request.toKubernetesVersion} while annotated ${freezeAnnotation}`)
})
