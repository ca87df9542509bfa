/** Labels of core's own CustomResourceDefinitions, as upstream's release manifests carry them. */
export const coreLabels = { 'cluster.x-k8s.io/provider': 'cluster-api' }
