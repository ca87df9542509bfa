import type { APIEndpoint, Cluster } from '@capstan/api'
import type { LocalControlPlane } from '../kinds/local-control-plane.ts'

export interface Endpoint {
  readonly host: string
  readonly port: number
}

/**
 * Returns the endpoint of the Cluster. Without one, returns the endpoint in the spec of the control plane, which core copies to the Cluster
 * once the control plane is initialized; `undefined` if the spec has none either.
 */
export const endpointOf = (controlPlane: LocalControlPlane | undefined, cluster: Cluster): Endpoint | undefined =>
  [cluster.spec.controlPlaneEndpoint, controlPlane?.spec.controlPlaneEndpoint].find(isComplete)

const isComplete = (endpoint: APIEndpoint | undefined): endpoint is Endpoint => !!endpoint?.host && !!endpoint.port
