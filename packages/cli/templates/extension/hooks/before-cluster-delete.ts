import { BeforeClusterDelete } from '@capstan/api'
import { holdFor, on, proceedNow } from '@capstan/extension'

/** Blocks the deletion of a Cluster while it has the annotation that is named by the setting `keepAnnotation`. */
export const beforeClusterDelete = on(BeforeClusterDelete, { name: 'before-cluster-delete' }, ({ request, settings }) => {
  const { keepAnnotation = '' } = settings
  const { annotations = {} } = request.cluster.metadata
  if (keepAnnotation === '' || !(keepAnnotation in annotations)) return proceedNow()
  return holdFor(30, `kept while annotated ${keepAnnotation}`)
})
