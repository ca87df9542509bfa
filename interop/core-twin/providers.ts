/** Reports of the stub providers. A case changes the report of a role with `twin.setReports`. */
import type { Behaviour, Behaviours } from './side.ts'

/** Behaviour of a provider that has not reconciled its object yet. */
export const noReport: Behaviour = () => undefined

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
 * Report of a hosted control plane, which has no Machines. Of a Cluster without this report and without control plane Machines,
 * core neither drains nor deletes Nodes.
 */
export const hostedControlPlane: Behaviour = (object, objects) => {
  const { status } = everythingReady.controlPlane(object, objects)!
  return { status: { ...status, externalManagedControlPlane: true } }
}
