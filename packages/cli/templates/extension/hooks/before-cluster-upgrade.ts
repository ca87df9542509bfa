import { BeforeClusterUpgrade } from '@capstan/api'
import { holdFor, on, proceedNow } from '@capstan/extension'

/** An upgrade waits while the Cluster has the annotation that the setting `freezeAnnotation` names. */
export const beforeClusterUpgrade = on(BeforeClusterUpgrade, { name: 'before-cluster-upgrade' }, ({ request, settings }) => {
  const { freezeAnnotation = '' } = settings
  const { annotations = {} } = request.cluster.metadata
  if (freezeAnnotation === '' || !(freezeAnnotation in annotations)) return proceedNow()
  return holdFor(60, `not upgraded to ${request.toKubernetesVersion} while annotated ${freezeAnnotation}`)
})
