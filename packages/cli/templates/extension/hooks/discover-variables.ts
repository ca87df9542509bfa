import { DiscoverVariables } from '@capstan/api'
import { on, proceedWith } from '@capstan/extension'

/** Declares the variable `region`, which Clusters can set if a patch of their ClusterClass refers to this handler. */
export const discoverVariables = on(DiscoverVariables, { name: 'discover-variables' }, () =>
  proceedWith({
    variables: [{ name: 'region', required: false, schema: { openAPIV3Schema: { type: 'string', default: 'eu1' } } }],
  }),
)
