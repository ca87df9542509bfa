import type { Cluster } from '@capstan/api'
import { proceed, type ReconcileContext, requeue, wait } from '@capstan/controller'
import { type Client, keyOf, Node, orAbsent } from '@capstan/kube'
import { parseBootstrapData, type Registration } from '../../bootstrap/data.ts'
import { type LocalMachine, LocalMachineConditions } from '../../kinds/local-machine.ts'
import { findSecret, secretText } from '../../secrets.ts'
import { retryOutcome, failureAt, type Progress, progress, reportTerminal } from '../../simulation.ts'
import { type Kubelet, newNode, nodeStatus } from '../../workload/node.ts'
import type { Workloads } from '../../workload/workloads.ts'
import type { BootInputs } from './boot.ts'
import type { Stage } from './provision.ts'

const { NodeProvisioned } = LocalMachineConditions

/**
 * Boots the provisioned machine: a control plane machine starts its API server, then the kubelet registers its Node. If the Node exists,
 * writes only its status, and only if the status differs, so that a restart of the provider changes nothing.
 */
export async function joinCluster(
  object: LocalMachine,
  boot: BootInputs,
  cluster: Cluster,
  io: ReconcileContext,
  workloads: Workloads,
): Promise<Stage> {
  const now = io.clock.now()
  const step = bootProgress(object, now)
  if (step === undefined) {
    const message = 'Waiting for the machine to be provisioned'
    return { outcome: proceed(), condition: NodeProvisioned.false('WaitingForMachine', message) }
  }
  if (step.state === 'running') {
    const condition = NodeProvisioned.false('Provisioning', 'Node is being provisioned')
    return { outcome: requeue(step.until - now, 'Node to be provisioned'), condition }
  }
  if (step.state === 'failed') {
    reportTerminal((object.status ??= {}), object.spec?.simulated?.failure)
    return {
      outcome: retryOutcome(step.retryAt, now, 'failed Node'),
      condition: NodeProvisioned.false('ProvisioningFailed', step.message),
    }
  }

  const { isControlPlane } = boot
  const workload = isControlPlane
    ? await startApiServer(object, boot, cluster, io, workloads)
    : workloads.clientFor(keyOf(cluster))
  if (!workload) {
    const message = isControlPlane
      ? `Waiting for Secret ${cluster.metadata.name}-ca`
      : 'Waiting for the API server to be reachable'
    const outcome = isControlPlane ? requeue(SecretCheckInterval, message) : wait(message)
    // A registered Node still exists while the API server is down, for example during a restart of this process.
    const isRegistered = !isControlPlane && boot.hasNode
    return {
      outcome,
      condition: isRegistered ? NodeProvisioned.true('Provisioned') : NodeProvisioned.false('WaitingForControlPlane', message),
    }
  }
  const kubelet = kubeletOf(object, boot)
  const expired = await reportNode(workload, kubelet, object, boot, io)
  if (expired !== undefined) {
    const message = `Bootstrap data of Secret ${boot.dataSecretName} expired at ${expired}`
    return { outcome: requeue(SecretCheckInterval, message), condition: NodeProvisioned.false('BootstrapDataExpired', message) }
  }
  return {
    outcome: proceed(),
    condition:
      kubelet.failureMessage === undefined
        ? NodeProvisioned.true('Provisioned')
        : NodeProvisioned.false('KubeletFailed', kubelet.failureMessage),
  }
}

/**
 * After a restart of the provider, starts the API server of a control plane machine that is paused or being deleted. Does nothing for
 * workers, and for machines that have not booted. A machine that is being deleted must have booted before its deletion began.
 */
export async function restoreMachine(
  object: LocalMachine,
  boot: BootInputs,
  cluster: Cluster,
  io: ReconcileContext,
  workloads: Workloads,
): Promise<void> {
  const deleted = Date.parse(object.metadata.deletionTimestamp ?? '')
  const now = Math.min(io.clock.now(), Number.isNaN(deleted) ? Number.POSITIVE_INFINITY : deleted)
  if (!boot.isControlPlane || bootProgress(object, now)?.state !== 'done') return
  await startApiServer(object, boot, cluster, io, workloads)
}

/** Returns the progress of the boot; `undefined` before the machine is provisioned. */
function bootProgress({ spec, status }: LocalMachine, now: number): Progress | undefined {
  const provisioned = status?.timeline?.provisioned
  if (!status?.initialization?.provisioned || provisioned === undefined) return undefined
  const { nodeDelay, failure } = spec?.simulated ?? {}
  return progress(Date.parse(provisioned), now, { delay: nodeDelay, failure: failureAt(failure, 'node') })
}

/** Milliseconds between checks for certificates that another controller provides, and for renewed bootstrap data. */
const SecretCheckInterval = 10_000

/** Starts the API server of the machine unless it runs. Returns a client; `undefined` while the cluster has no certificate authority. */
async function startApiServer(
  object: LocalMachine,
  boot: BootInputs,
  cluster: Cluster,
  io: ReconcileContext,
  workloads: Workloads,
): Promise<Client | undefined> {
  const key = keyOf(cluster)
  const running = workloads.clientFor(key, object.metadata.name)
  if (running) return running
  // By the contract, cluster certificates are Secrets named after the Cluster, which any client may create.
  const secret = await findSecret({ ...key, name: `${key.name}-ca` }, io)
  const certificate = secretText(secret, 'tls.crt')
  const caKey = secretText(secret, 'tls.key')
  if (certificate === undefined || caKey === undefined) return undefined
  return workloads.join(key, object.metadata.name, {
    authority: { certificate, key: caKey },
    endpointHost: cluster.spec.controlPlaneEndpoint?.host,
    kubernetesVersion: boot.version,
  })
}

const kubeletOf = (object: LocalMachine, { version = '', isControlPlane }: BootInputs): Kubelet => ({
  nodeName: object.metadata.name,
  providerID: object.spec!.providerID!,
  version,
  role: isControlPlane ? 'control-plane' : 'worker',
  addresses: object.status?.addresses ?? [],
  failureMessage: failureAt(object.spec?.simulated?.failure, 'kubelet')?.message,
})

/**
 * Registers the Node with the bootstrap data, and updates its status. If the machine cannot join because the data have expired, returns the
 * time of their expiry.
 */
async function reportNode(
  workload: Client,
  kubelet: Kubelet,
  object: LocalMachine,
  boot: BootInputs,
  io: ReconcileContext,
): Promise<string | undefined> {
  const key = { name: kubelet.nodeName }
  const now = io.clock.now()
  const existing = await orAbsent(workload.get(Node, key))
  const data = existing ? undefined : await readRegistration(object, boot, io)
  // A kubelet that has joined before has its own credentials, and needs no bootstrap data.
  if (data?.expires !== undefined && !boot.hasNode && Date.parse(data.expires) <= now) return data.expires
  const node = existing ?? (await workload.create(Node, newNode(kubelet, data, now)))
  // The old kubelet runs until an in-place update is complete.
  const version = (boot.isUpdateInProgress && node.status?.nodeInfo?.kubeletVersion) || kubelet.version
  const status = nodeStatus(node, { ...kubelet, version }, now)
  if (status) await workload.patch(Node, key, { type: 'merge', body: { status } }, { subresource: 'status' })
  return undefined
}

async function readRegistration(
  { metadata }: LocalMachine,
  { dataSecretName }: BootInputs,
  io: ReconcileContext,
): Promise<Registration | undefined> {
  const data = await findSecret({ namespace: metadata.namespace!, name: dataSecretName! }, io)
  return parseBootstrapData(secretText(data, 'value'), secretText(data, 'format'))
}
