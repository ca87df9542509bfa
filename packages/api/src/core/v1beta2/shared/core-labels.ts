/** Labels of core's own CustomResourceDefinitions: upstream's release manifests have the first, `clusterctl init` adds the second. */
import { ClusterctlLabel, ProviderNameLabel } from '../../well-known.ts'

export const coreLabels = { [ProviderNameLabel]: 'cluster-api', [ClusterctlLabel]: '' }
