import { BeforeClusterCreate } from '@capstan/api'
import { holdFor, on, proceedNow } from '@capstan/extension'

/** Blocks the creation of a Cluster until it has the label that the setting `requiredLabel` names. Without a value of the setting, never blocks. */
export const beforeClusterCreate = on(BeforeClusterCreate, { name: 'before-cluster-create' }, ({ request, settings }) => {
  const { requiredLabel = '' } = settings
  const { labels = {} } = request.cluster.metadata
  if (requiredLabel === '' || requiredLabel in labels) return proceedNow()
  return holdFor(10, `waiting for the label ${requiredLabel}`)
})
