/** Reports of the stub providers. A case changes the report of a role with `twin.setReports`. */
import type { Behaviour, Behaviours } from './side.ts'

/** Behaviour of a provider that has not reconciled its object yet. */
export const noReport: Behaviour = () => undefined

/** The default behaviour of all providers: their objects are ready. */
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
 * Behaviour of the provider of a hosted control plane, which has no Machines. Core drains and deletes the Node of a deleted Machine
 * only if the control plane is hosted or another control plane Machine remains.
 */
export const hostedControlPlane: Behaviour = (object, objects) => {
  const { status } = everythingReady.controlPlane(object, objects)!
  return { status: { ...status, externalManagedControlPlane: true } }
}
