/** Creates the controllers of this provider, to run them in a manager. */
import { Cluster, ClusterNameLabel, Machine, MachinePool, MachinePoolNameLabel } from '@capstan/api'
import { type Controller, controller, type Index, type Source, watches } from '@capstan/controller'
import { CustomResourceDefinition, isTrue, type Kind, keyOf, type KubeObject, Secret } from '@capstan/kube'
import { reconcileLocalBootstrapConfig } from './bootstrap/reconcile.ts'
import { isClusterSecret } from './controlplane/certificates.ts'
import type { InPlaceUpdates } from './controlplane/in-place.ts'
import { reconcileLocalControlPlane } from './controlplane/reconcile.ts'
import { machinesByCluster, reconcileLocalCluster } from './infrastructure/cluster/reconcile.ts'
import { reconcileLocalMachine } from './infrastructure/machine/reconcile.ts'
import { reconcileLocalMachinePool } from './infrastructure/machinepool/reconcile.ts'
import { LocalBootstrapConfig } from './kinds/local-bootstrap-config.ts'
import { LocalCluster } from './kinds/local-cluster.ts'
import { LocalControlPlane, LocalControlPlaneConditions } from './kinds/local-control-plane.ts'
import { LocalMachine } from './kinds/local-machine.ts'
import { LocalMachinePool } from './kinds/local-machine-pool.ts'
import {
  byCluster,
  relevantClusterChange,
  relevantMachineChange,
  relevantMachinePoolChange,
  ofCluster,
  ofSameCluster,
} from './owner.ts'
import type { Workloads } from './workload/workloads.ts'

export interface LocalControllersOptions {
  readonly workloads: Workloads
  /** Address of the listener of all workload API servers. It must not change while clusters exist. */
  readonly endpoint: { readonly host: string; readonly port: number }
  /** Extensions that update control plane Machines in place. If absent, control plane Machines are replaced. */
  readonly updates?: InPlaceUpdates
}

const localConfigsByCluster = byCluster(LocalBootstrapConfig)
const localClustersByCluster = byCluster(LocalCluster)
const localPoolsByCluster = byCluster(LocalMachinePool)
const localControlPlanesByCluster = byCluster(LocalControlPlane)

/** Creates all controllers of the local provider. */
export function localControllers({ workloads, endpoint, updates }: LocalControllersOptions): readonly Controller[] {
  return [
    controller({
      name: 'localcluster',
      for: LocalCluster,
      watches: [
        watches(Cluster, ofCluster(localClustersByCluster), relevantClusterChange),
        // The deletion of a LocalCluster waits for its last LocalMachine.
        watches(LocalMachine, ofSameCluster(localClustersByCluster), isGone),
      ],
      reconcile: (key, io) => reconcileLocalCluster(key, io, { workloads, endpoint }),
    }),
    controller({
      name: 'localmachine',
      for: LocalMachine,
      watches: [
        watches(Cluster, ofCluster(machinesByCluster), relevantClusterChange),
        watches(
          Machine,
          (machine) => keyOfReference(machine, LocalMachine, machine.spec.infrastructureRef),
          relevantMachineChange,
        ),
        // Events of Secrets trigger no reconcile: reconciles read bootstrap data and the certificate authority from the cache.
        watches(Secret, () => []),
      ],
      sources: [workloadStarted(workloads, machinesByCluster)],
      reconcile: (key, io) => reconcileLocalMachine(key, io, { workloads }),
    }),
    controller({
      name: 'localbootstrapconfig',
      for: LocalBootstrapConfig,
      watches: [
        watches(Cluster, ofCluster(localConfigsByCluster), relevantClusterChange),
        watches(
          Machine,
          (machine) => keyOfReference(machine, LocalBootstrapConfig, machine.spec.bootstrap.configRef),
          relevantMachineChange,
        ),
        // Events of these kinds trigger no reconcile: reconciles read the endpoint of a control plane, and the expiry of bootstrap data,
        // from the cache.
        watches(LocalControlPlane, () => []),
        watches(Secret, () => []),
        watches(
          MachinePool,
          ({ metadata, spec }) => keyOfReference({ metadata }, LocalBootstrapConfig, spec.template.spec.bootstrap.configRef),
          relevantMachinePoolChange,
        ),
      ],
      reconcile: reconcileLocalBootstrapConfig,
    }),
    controller({
      name: 'localmachinepool',
      for: LocalMachinePool,
      watches: [
        watches(Cluster, ofCluster(localPoolsByCluster), relevantClusterChange),
        watches(
          MachinePool,
          ({ metadata, spec }) => keyOfReference({ metadata }, LocalMachinePool, spec.template.spec.infrastructureRef),
          relevantMachinePoolChange,
        ),
        watches(LocalMachine, poolOf),
        // Events of LocalMachines cover neither the deletion of a Machine nor a Machine without a LocalMachine.
        watches(Machine, ofSameCluster(localPoolsByCluster), ({ previous, object }) => isPooled(object ?? previous)),
      ],
      reconcile: reconcileLocalMachinePool,
    }),
    controller({
      name: 'localcontrolplane',
      for: LocalControlPlane,
      owns: [Machine],
      aggregates: [Machine],
      watches: [
        watches(Cluster, ofCluster(localControlPlanesByCluster), relevantClusterChange),
        // The deletion of a LocalControlPlane waits for the last worker Machine.
        watches(Machine, ofSameCluster(localControlPlanesByCluster), isGone),
        // Users may provide and replace certificates in Secrets with any owner, and without the label that the manager's event filter
        // requires. The filter therefore applies only to the control planes.
        { ...watches(Secret, ofSameCluster(localControlPlanesByCluster), isClusterSecretEvent), filter: 'keys' },
        // Events of these kinds trigger no reconcile: reconciles read bootstrap configs, and the API versions of kinds, from the cache.
        watches(LocalBootstrapConfig, () => []),
        watches(CustomResourceDefinition, () => []),
      ],
      sources: [workloadStarted(workloads, localControlPlanesByCluster), extensionsChanged(updates)],
      reconcile: (key, io) => reconcileLocalControlPlane(key, io, { workloads, endpoint, updates }),
    }),
  ]
}

/** When a registered extension changes, enqueues all control planes with a rollout in progress, so that they retry at once. */
const extensionsChanged = (updates: InPlaceUpdates | undefined): Source => ({
  start(enqueue, { cache }) {
    updates?.onChanged?.(() => {
      for (const controlPlane of cache.byIndex(rollingOut, '')) enqueue(keyOf(controlPlane))
    })
  },
})

const rollingOut: Index<LocalControlPlane> = {
  name: 'localcontrolplanes that roll out',
  kind: LocalControlPlane,
  values: (controlPlane) => (isTrue(controlPlane, LocalControlPlaneConditions.RollingOut.type) ? [''] : []),
}

/** Maps a Machine or MachinePool to the object that it refers to, if that object has this kind. */
const keyOfReference = (
  { metadata }: Pick<KubeObject, 'metadata'>,
  { group, kind }: Kind,
  ref: { apiGroup: string; kind: string; name: string } | undefined,
) => (ref?.apiGroup === group && ref.kind === kind ? [{ namespace: metadata.namespace!, name: ref.name }] : [])

/** Maps a LocalMachine to its LocalMachinePool. */
const poolOf = ({ metadata }: LocalMachine) =>
  (metadata.ownerReferences ?? []).flatMap(({ kind, name }) =>
    kind === LocalMachinePool.kind ? [{ namespace: metadata.namespace!, name }] : [],
  )

const isPooled = (object: KubeObject | undefined): boolean => object?.metadata.labels?.[MachinePoolNameLabel] !== undefined

const isClusterSecretEvent = ({
  previous,
  object,
}: {
  previous: KubeObject | undefined
  object: KubeObject | undefined
}): boolean => {
  const { name, labels } = (object ?? previous)!.metadata
  return isClusterSecret(name, labels?.[ClusterNameLabel] ?? '')
}

const isGone = ({ object }: { object: KubeObject | undefined }): boolean => object === undefined

/** Enqueues the objects of an index that belong to a cluster, when the workload API server of the cluster has started. */
const workloadStarted = <T extends KubeObject>(workloads: Pick<Workloads, 'onStarted'>, index: Index<T>): Source => ({
  start(enqueue, { cache, signal }) {
    const stop = workloads.onStarted(({ namespace, name }) => {
      for (const object of cache.byIndex(index, `${namespace}/${name}`)) enqueue(keyOf(object))
    })
    signal.addEventListener('abort', stop, { once: true })
  },
})
