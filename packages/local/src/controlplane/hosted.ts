/**
 * Reconciles hosted control planes. The API server of such a control plane runs without control plane Machines. The control plane supplies
 * an endpoint if the Cluster has none.
 */
import type { Cluster } from '@capstan/api'
import { type Outcome, proceed, type ReconcileContext, wait } from '@capstan/controller'
import { keyOf, removeFinalizer } from '@capstan/kube'
import { type LocalControlPlane, LocalControlPlaneFinalizer } from '../kinds/local-control-plane.ts'
import { recordVersion } from '../workload/basics.ts'
import type { Workloads } from '../workload/workloads.ts'
import { ensureCertificates } from './certificates.ts'
import { type Endpoint, endpointOf } from './endpoint.ts'
import { initialize } from './initialize.ts'
import { ensureKubeconfig } from './kubeconfig.ts'
import { observeMachines } from './observe.ts'
import type { ControlPlaneScope } from './scope.ts'

/** Returns the name that `Workloads` gets in place of the name of a control plane machine. No machine can have this name. */
const hostedMemberName = ({ metadata }: LocalControlPlane): string => `hosted/${metadata.name}`

/** Starts the API server, or changes its version, and initializes the control plane. */
export async function reconcileHosted(
  scope: ControlPlaneScope,
  io: ReconcileContext,
  workloads: Pick<Workloads, 'join' | 'trust'>,
  listener: Endpoint,
): Promise<Outcome> {
  const { controlPlane, cluster } = scope
  if (!cluster.status?.initialization?.infrastructureProvisioned) {
    return wait('Cluster status.initialization.infrastructureProvisioned to be true')
  }
  scope.certificates = await ensureCertificates(controlPlane, cluster, io)
  if (scope.certificates.state !== 'available') return wait('certificates')
  const { authority } = scope.certificates
  if (!endpointOf(controlPlane, cluster)) controlPlane.spec.controlPlaneEndpoint = { ...listener }
  const endpoint = endpointOf(controlPlane, cluster)!
  const { version } = controlPlane.spec
  const boot = { authority, endpointHost: endpoint.host, kubernetesVersion: version }
  const workload = await workloads.join(keyOf(cluster), hostedMemberName(controlPlane), boot)
  workloads.trust(keyOf(cluster), authority)
  await ensureKubeconfig(controlPlane, cluster, authority, endpoint, io)
  await recordVersion(workload, version)
  return initialize(scope, io, workload)
}

/**
 * After a restart of the provider, starts the API server of an initialized control plane that is paused or waits for its
 * workers to be deleted.
 */
export async function restoreHosted(
  controlPlane: LocalControlPlane,
  cluster: Cluster,
  io: ReconcileContext,
  workloads: Pick<Workloads, 'join' | 'clientFor'>,
): Promise<void> {
  const { status, spec } = controlPlane
  if (!spec.hosted || !status?.initialization?.controlPlaneInitialized || workloads.clientFor(keyOf(cluster))) return
  const certificates = await ensureCertificates(controlPlane, cluster, io)
  if (certificates.state !== 'available') return
  await workloads.join(keyOf(cluster), hostedMemberName(controlPlane), {
    authority: certificates.authority,
    endpointHost: endpointOf(controlPlane, cluster)?.host,
    kubernetesVersion: spec.version,
  })
}

/** Waits until the last worker is deleted, then stops the API server and removes the finalizer. */
export async function removeHosted(
  scope: ControlPlaneScope,
  io: ReconcileContext,
  workloads: Pick<Workloads, 'join' | 'leave' | 'clientFor'>,
): Promise<Outcome> {
  const { controlPlane, cluster } = scope
  observeMachines(scope, io)
  scope.certificates = await ensureCertificates(controlPlane, cluster, io)
  if (scope.workers.length > 0) {
    scope.deletion = 'waiting for workers'
    await restoreHosted(controlPlane, cluster, io, workloads)
    return wait(`Machines to be deleted: ${scope.workers.join(', ')}`)
  }
  await workloads.leave(keyOf(cluster), hostedMemberName(controlPlane))
  scope.deletion = 'completed'
  removeFinalizer(controlPlane, LocalControlPlaneFinalizer)
  return proceed()
}
