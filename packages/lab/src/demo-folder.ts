/** URL of the folder with the manifests of the demo: `class.yaml`, `cluster.yaml` and `second-cluster.yaml`. */
export const demoFolder = new URL('../demo/', import.meta.url)
