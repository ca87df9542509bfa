/**
 * The infrastructure that this provider manages. Implement this interface with calls of your own API; keep `memoryCloud` for tests.
 * Controllers repeat the calls, also after a restart: each call must find the resources that an earlier call created.
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

/** A simulated cloud in which every resource exists immediately. */
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
