import type { Machine } from '@capstan/api'
import { type Cluster, MachineControlPlaneLabel } from '@capstan/api'
import { proceed, type ReconcileContext, requeue, wait } from '@capstan/controller'
import { type Client, keyOf, Node, orAbsent, Secret } from '@capstan/kube'
import { parseBootstrapData } from '../../bootstrap/data.ts'
import { type LocalMachine, LocalMachineConditions } from '../../kinds/local-machine.ts'
import { secretText } from '../../secret-data.ts'
import { again, failureAt, progress } from '../../simulation.ts'
import { type Kubelet, newNode, nodeStatus } from '../../workload/node.ts'
import type { Workloads } from '../../workload/workloads.ts'
import type { Stage } from './provision.ts'

const { NodeProvisioned } = LocalMachineConditions

/**
 * Boots the provisioned machine: on a control plane its API server joins the workload plane, then the kubelet registers its Node.
 * What is there already is left alone, so that it is the same after a restart of the provider.
 */
export async function joinCluster(
  object: LocalMachine,
  machine: Machine,
  cluster: Cluster,
  io: ReconcileContext,
  workloads: Workloads,
): Promise<Stage> {
  const provisioned = object.status?.timeline?.provisioned
  if (!object.status?.initialization?.provisioned || provisioned === undefined) {
    const message = 'Waiting for the machine to be provisioned'
    return { outcome: proceed(), condition: NodeProvisioned.false('WaitingForMachine', message) }
  }
  const now = io.clock.now()
  const simulated = object.spec?.simulated
  const step = progress(Date.parse(provisioned), now, {
    delay: simulated?.nodeDelay,
    failure: failureAt(simulated?.failure, 'node'),
  })
  if (step.state === 'running') {
    const condition = NodeProvisioned.false('Provisioning', 'Node is being provisioned')
    return { outcome: requeue(step.until - now, 'Node to be provisioned'), condition }
  }
  if (step.state === 'failed') {
    return {
      outcome: again(step.retryAt, now, 'failed Node'),
      condition: NodeProvisioned.false('ProvisioningFailed', step.message),
    }
  }

  const isControlPlane = machine.metadata.labels?.[MachineControlPlaneLabel] !== undefined
  const workload = isControlPlane
    ? await startApiServer(object, machine, cluster, io, workloads)
    : workloads.clientFor(keyOf(cluster))
  if (!workload) {
    const message = isControlPlane
      ? `Waiting for Secret ${cluster.metadata.name}-ca`
      : 'Waiting for the API server to be reachable'
    const outcome = isControlPlane ? requeue(CertificateCheck, message) : wait(message)
    return { outcome, condition: NodeProvisioned.false('WaitingForControlPlane', message) }
  }
  const kubelet = await kubeletOf(object, machine, isControlPlane, io)
  await reportNode(workload, kubelet, now)
  return {
    outcome: proceed(),
    condition:
      kubelet.trouble === undefined
        ? NodeProvisioned.true('Provisioned')
        : NodeProvisioned.false('KubeletFailed', kubelet.trouble),
  }
}

/** How long to wait before looking again for certificates that somebody else was to bring. */
const CertificateCheck = 10_000

/** Adds this machine's API server to the workload plane; nothing while the cluster has no certificate authority. */
async function startApiServer(
  object: LocalMachine,
  machine: Machine,
  cluster: Cluster,
  io: ReconcileContext,
  workloads: Workloads,
): Promise<Client | undefined> {
  const key = keyOf(cluster)
  const running = workloads.clientFor(key, object.metadata.name)
  if (running) return running
  // Contract: cluster certificates are Secrets named after the Cluster, whoever made them.
  const secret = await orAbsent(io.client.get(Secret, { ...key, name: `${key.name}-ca` }))
  const certificate = secretText(secret, 'tls.crt')
  const caKey = secretText(secret, 'tls.key')
  if (certificate === undefined || caKey === undefined) return undefined
  return workloads.join(key, object.metadata.name, {
    authority: { certificate, key: caKey },
    endpointHost: cluster.spec.controlPlaneEndpoint?.host,
    kubernetesVersion: machine.spec.version,
  })
}

async function kubeletOf(
  object: LocalMachine,
  machine: Machine,
  isControlPlane: boolean,
  io: ReconcileContext,
): Promise<Kubelet> {
  const { namespace, name } = object.metadata
  const data = await orAbsent(io.client.get(Secret, { namespace: namespace!, name: machine.spec.bootstrap.dataSecretName! }))
  const { nodeLabels, nodeTaints } = parseBootstrapData(secretText(data, 'value'), secretText(data, 'format'))
  return {
    nodeName: name,
    providerID: object.spec!.providerID!,
    version: machine.spec.version ?? '',
    role: isControlPlane ? 'control-plane' : 'worker',
    labels: nodeLabels,
    taints: nodeTaints,
    addresses: object.status?.addresses ?? [],
    trouble: failureAt(object.spec?.simulated?.failure, 'kubelet')?.message,
  }
}

/** Registers the Node, and keeps its status true. */
async function reportNode(workload: Client, kubelet: Kubelet, now: number): Promise<void> {
  const found = await orAbsent(workload.get(Node, { name: kubelet.nodeName }))
  const node = found ?? (await workload.create(Node, newNode(kubelet, now)))
  const status = nodeStatus(node, kubelet, now)
  if (!status) return
  await workload.patch(Node, { name: kubelet.nodeName }, { type: 'merge', body: { status } }, { subresource: 'status' })
}
