import { DiscoverVariables } from '@capstan/api'
import { on, proceedWith } from '@capstan/extension'

/** Clusters whose class names this handler can set the variable `region`. */
export const discoverVariables = on(DiscoverVariables, { name: 'discover-variables' }, () =>
  proceedWith({
    variables: [{ name: 'region', required: false, schema: { openAPIV3Schema: { type: 'string', default: 'eu1' } } }],
  }),
)
