import { BeforeClusterDelete } from '@capstan/api'
import { holdFor, on, proceedNow } from '@capstan/extension'

/** A Cluster is not deleted while it has the annotation that the setting `keepAnnotation` names. */
export const beforeClusterDelete = on(BeforeClusterDelete, { name: 'before-cluster-delete' }, ({ request, settings }) => {
  const { keepAnnotation = '' } = settings
  const { annotations = {} } = request.cluster.metadata
  if (keepAnnotation === '' || !(keepAnnotation in annotations)) return proceedNow()
  return holdFor(30, `kept while annotated ${keepAnnotation}`)
})
