/**
 * The infrastructure that this provider manages. Implement this interface with calls to your own API; keep `memoryCloud` for tests.
 * Controllers repeat the calls, also after a restart: each call must find the resources that an earlier call created, and a deletion must
 * succeed if its resource is already gone. A resource has the name of its object in Kubernetes, in the form `NAMESPACE/NAME`.
 */
export interface Cloud {
  /** Creates the network of a Cluster unless it exists. */
  ensureNetwork(cluster: string): Promise<Network>
  deleteNetwork(cluster: string): Promise<void>
  /** Creates an instance unless it exists. `bootstrapData`, which the instance runs when it boots, is a secret. */
  ensureInstance(name: string, bootstrapData: string): Promise<Instance>
  deleteInstance(name: string): Promise<void>
  /** Creates a group of instances, or changes its size. */
  ensureGroup(name: string, replicas: number): Promise<readonly Instance[]>
  deleteGroup(name: string): Promise<void>
  /** Creates a control plane, or upgrades it. */
  ensureControlPlane(name: string, version: string): Promise<void>
  deleteControlPlane(name: string): Promise<void>
}

/** The network of a Cluster: the endpoint of its control plane, and its failure domains. */
export interface Network {
  readonly host: string
  readonly port: number
  readonly failureDomains: readonly string[]
}

export interface Instance {
  /** Must equal spec.providerID of the instance's Node. */
  readonly providerID: string
  readonly address: string
}

interface MemoryCloud extends Cloud {
  /** The resources that exist, such as `instance default/a`. */
  readonly resources: ReadonlySet<string>
}

/** A simulated cloud in which every resource exists immediately. */
export function memoryCloud(): MemoryCloud {
  const resources = new Set<string>()
  const ensure = (resource: string) => void resources.add(resource)
  const remove = async (resource: string) => void resources.delete(resource)
  const instance = (name: string): Instance => ({
    providerID: `sample:///${name}`,
    address: `${name.replace('/', '.')}.internal`,
  })
  return {
    resources,
    async ensureNetwork(cluster) {
      ensure(`network ${cluster}`)
      return { host: '127.0.0.1', port: 6443, failureDomains: ['a', 'b', 'c'] }
    },
    deleteNetwork: (cluster) => remove(`network ${cluster}`),
    async ensureInstance(name) {
      ensure(`instance ${name}`)
      return instance(name)
    },
    deleteInstance: (name) => remove(`instance ${name}`),
    async ensureGroup(name, replicas) {
      ensure(`group ${name}`)
      return Array.from({ length: replicas }, (_, index) => instance(`${name}-${index}`))
    },
    deleteGroup: (name) => remove(`group ${name}`),
    ensureControlPlane: async (name) => ensure(`control plane ${name}`),
    deleteControlPlane: (name) => remove(`control plane ${name}`),
  }
}
