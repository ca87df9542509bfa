/**
 * The infrastructure that this provider manages. Replace `memoryCloud` by calls of your own API, and keep it for tests. Each call is made
 * again and again, also after a restart: it must find what an earlier one made.
 */
export interface Cloud {
  /** Makes the network of a Cluster unless it is there. */
  ensureNetwork(cluster: string): Promise<Network>
  deleteNetwork(cluster: string): Promise<void>
  /** Makes an instance unless it is there. `bootstrapData` is what it runs when it boots: a secret. */
  ensureInstance(name: string, bootstrapData: string): Promise<Instance>
  deleteInstance(name: string): Promise<void>
  /** Makes a group of instances, or changes its size. */
  ensureGroup(name: string, replicas: number): Promise<readonly Instance[]>
  deleteGroup(name: string): Promise<void>
  /** Makes a control plane, or upgrades it. */
  ensureControlPlane(cluster: string, version: string): Promise<void>
  deleteControlPlane(cluster: string): Promise<void>
}

export interface Network {
  readonly host: string
  readonly port: number
  readonly failureDomains: readonly string[]
}

export interface Instance {
  /** Equals spec.providerID of its Node. */
  readonly providerID: string
  readonly address: string
}

/** Everything exists as soon as it is asked for. */
export function memoryCloud(): Cloud {
  const instance = (name: string): Instance => ({
    providerID: `sample:///${name}`,
    address: `${name.replace('/', '.')}.internal`,
  })
  const done = () => Promise.resolve()
  return {
    ensureNetwork: () => Promise.resolve({ host: '127.0.0.1', port: 6443, failureDomains: ['a', 'b', 'c'] }),
    deleteNetwork: done,
    ensureInstance: (name) => Promise.resolve(instance(name)),
    deleteInstance: done,
    ensureGroup: (name, replicas) => Promise.resolve(Array.from({ length: replicas }, (_, i) => instance(`${name}-${i}`))),
    deleteGroup: done,
    ensureControlPlane: done,
    deleteControlPlane: done,
  }
}
