/** Labels of core's CustomResourceDefinitions. Upstream's release manifests contain the first; `clusterctl init` adds the second. */
import { ClusterctlLabel, ProviderNameLabel } from '../../well-known.ts'

export const coreLabels = { [ProviderNameLabel]: 'cluster-api', [ClusterctlLabel]: '' }
