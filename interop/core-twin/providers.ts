/**
 * Functions that return the spec and status fields which the stub providers write to their objects, by role: `cluster`, `controlPlane`,
 * `machine` and `config` (the bootstrap config). A case replaces the function of a role with `setReports` of its `Twin`.
 */
import type { Behaviour, Behaviours } from './side.ts'

/** Behaviour of a provider that has not reconciled its object yet. */
export const noReport: Behaviour = () => undefined

/** Default behaviour of the providers of all roles: their objects are provisioned or initialized, and all replicas are ready. */
export const everythingReady: Behaviours = {
  cluster: () => ({
    spec: { controlPlaneEndpoint: { host: '127.0.0.1', port: 6443 } },
    status: { initialization: { provisioned: true } },
  }),
  controlPlane: ({ spec }) => ({
    status: {
      initialization: { controlPlaneInitialized: true },
      ...(spec?.version === undefined ? {} : { version: spec.version }),
      ...(spec?.replicas === undefined
        ? {}
        : {
            replicas: spec.replicas,
            readyReplicas: spec.replicas,
            availableReplicas: spec.replicas,
            upToDateReplicas: spec.replicas,
          }),
    },
  }),
  machine: ({ metadata }) => ({
    spec: { providerID: `twin://${metadata.name}` },
    status: { initialization: { provisioned: true } },
  }),
  config: () => ({ status: { initialization: { dataSecretCreated: true }, dataSecretName: 'data' } }),
}

/**
 * Behaviour of the provider of a hosted control plane, which has no Machines. Without control plane Machines, core drains and deletes the
 * Node of a deleted Machine only if the control plane reports `externalManagedControlPlane`.
 */
export const hostedControlPlane: Behaviour = (object, objects) => {
  const { status } = everythingReady.controlPlane(object, objects)!
  return { status: { ...status, externalManagedControlPlane: true } }
}
