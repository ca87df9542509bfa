/** Reconciles LocalBootstrapConfigs: creates and renews the data Secret from which one machine, or every machine of a pool, boots. */
import {
  Cluster,
  ClusterNameLabel,
  ClusterSecretType,
  ConditionOrder,
  type Machine,
  MachineControlPlaneLabel,
  type MachinePool,
  pausedCondition,
} from '@capstan/api'
import { type Outcome, proceed, type ReconcileContext, reconcileObject, requeue, wait } from '@capstan/controller'
import {
  controllerReference,
  isControlledBy,
  isDeleting,
  type NewCondition,
  type ObjectKey,
  ownerOfKind,
  Secret,
  seconds,
  summary,
} from '@capstan/kube'
import { LocalBootstrapConfig, LocalBootstrapConfigConditions as Conditions } from '../kinds/local-bootstrap-config.ts'
import { type Endpoint, endpointOf } from '../controlplane/endpoint.ts'
import { LocalControlPlane } from '../kinds/local-control-plane.ts'
import { owningMachine, owningMachinePool } from '../owner.ts'
import { reportConditions, significantFields } from '../report-conditions.ts'
import { createSecret, findSecret, secretData, secretText } from '../secrets.ts'
import { retryOutcome, failureAt, timeText, progress, reportTerminal } from '../simulation.ts'
import { roleTaint } from '../workload/node.ts'
import { formatBootstrapData, parseBootstrapData } from './data.ts'

interface Result {
  readonly outcome: Outcome
  readonly condition: NewCondition
}

/** Owner of the data: one Machine, or a MachinePool for all of its machines. */
export interface BootstrapOwner {
  readonly clusterName: string
  readonly version: string | undefined
  readonly isControlPlane: boolean
  /** Whether a machine may still join with the data. */
  readonly mayJoin: boolean
  /** The endpoint of the Cluster, or of the Machine's control plane: control plane Machines may boot before the Cluster has an endpoint. */
  readonly endpoint?: Endpoint | undefined
}

const ownerFromMachine = ({ metadata, spec, status }: Machine): BootstrapOwner => ({
  clusterName: spec.clusterName,
  version: spec.version,
  isControlPlane: metadata.labels?.[MachineControlPlaneLabel] !== undefined,
  mayJoin: !status?.nodeRef,
})

const ownerFromMachinePool = (machinePool: MachinePool | undefined): BootstrapOwner | undefined =>
  machinePool && {
    clusterName: machinePool.spec.clusterName,
    version: machinePool.spec.template.spec.version,
    isControlPlane: false,
    mayJoin: true,
  }

const Available = Conditions.DataSecretAvailable

interface Related {
  readonly owner: BootstrapOwner | undefined
  readonly cluster: Cluster | undefined
}

interface Scope {
  readonly object: LocalBootstrapConfig
  readonly owner: BootstrapOwner
  readonly cluster: Cluster
  conditions: readonly NewCondition[]
}

/** Creates and renews the bootstrap data of one Machine or MachinePool. May be called at any time, and any number of times. */
export const reconcileLocalBootstrapConfig = (key: ObjectKey, io: ReconcileContext): Promise<Outcome> =>
  reconcileObject(key, io, {
    kind: LocalBootstrapConfig,
    related: (object): Related => relatedOf(object, io),
    skip(object, { owner, cluster }) {
      if (isDeleting(object)) return proceed()
      if (!owner) return wait('Machine or MachinePool to own this LocalBootstrapConfig')
      return cluster ? undefined : wait(`Cluster ${owner.clusterName} to exist`)
    },
    paused: (object, { cluster }) => pausedCondition(cluster, object),
    scope: (object, { owner, cluster }): Scope => ({ object, owner: owner!, cluster: cluster!, conditions: [] }),
    phases: (object) => [
      async (scope) => {
        const { outcome, condition } = await ensureBootstrapData(object, scope.owner, scope.cluster, io)
        const ready = summary([condition], Conditions.Ready, {
          of: ['DataSecretAvailable'],
          reasons: { issue: 'NotReady', unknown: 'NotReady', info: 'Ready' },
        })
        scope.conditions = [condition, ready]
        return outcome
      },
    ],
    status({ object, cluster, conditions }) {
      reportConditions(object, conditions, cluster, io)
      return proceed()
    },
    significantFields,
    conditions: Object.keys(Conditions),
    order: ConditionOrder,
    observesGeneration: false,
  })

/** Finds the owner of the data and its Cluster in the cache. */
function relatedOf(object: LocalBootstrapConfig, { cache }: ReconcileContext): Related {
  const machine = owningMachine(cache, object)
  const owner = machine ? ownerFromMachine(machine) : ownerFromMachinePool(owningMachinePool(cache, object))
  if (!owner) return { owner, cluster: undefined }
  const namespace = object.metadata.namespace!
  const cluster = cache.peek(Cluster, { namespace, name: owner.clusterName })
  if (!cluster) return { owner, cluster }
  const controlPlane = machine && ownerOfKind(machine, LocalControlPlane)
  const endpoint = endpointOf(controlPlane && cache.peek(LocalControlPlane, { namespace, name: controlPlane.name }), cluster)
  return { owner: { ...owner, endpoint }, cluster }
}

async function ensureBootstrapData(
  object: LocalBootstrapConfig,
  owner: BootstrapOwner,
  cluster: Cluster,
  io: ReconcileContext,
): Promise<Result> {
  const status = (object.status ??= {})
  if (status.initialization?.dataSecretCreated) {
    return { outcome: await renewData(object, owner, cluster, io), condition: Available.true('Available') }
  }

  const missing = missingFor(owner, cluster)
  if (missing !== undefined) return { outcome: wait(missing), condition: Available.false('NotAvailable', missing) }
  const now = io.clock.now()
  status.timeline ??= {}
  status.timeline.started ??= timeText(now)
  const simulated = object.spec?.simulated
  const step = progress(Date.parse(status.timeline.started), now, {
    delay: simulated?.delay,
    failure: failureAt(simulated?.failure, 'data'),
  })
  if (step.state === 'running') {
    const message = 'Bootstrap data is being created'
    return { outcome: requeue(step.until - now, message), condition: Available.false('NotAvailable', message) }
  }
  if (step.state === 'failed') {
    reportTerminal(status, simulated?.failure)
    return {
      outcome: retryOutcome(step.retryAt, now, 'failed bootstrap data'),
      condition: Available.false('Failed', step.message),
    }
  }
  await createDataSecret(object, owner, cluster, io)
  // Contract: the name is deterministic, so that a crash before the status is written does not lead to a second Secret.
  status.dataSecretName = object.metadata.name
  status.initialization = { dataSecretCreated: true }
  // The watch event of this status leads to the reconcile that schedules the renewal.
  return { outcome: proceed(), condition: Available.true('Available') }
}

/** Returns a condition message that names the missing input of the data; `undefined` when all inputs exist. Pure. */
export function missingFor(
  { isControlPlane, endpoint }: Pick<BootstrapOwner, 'isControlPlane' | 'endpoint'>,
  cluster: Cluster,
): string | undefined {
  if (!cluster.status?.initialization?.infrastructureProvisioned) {
    return 'Waiting for Cluster status.initialization.infrastructureProvisioned to be true'
  }
  if (!endpoint) return 'Waiting for Cluster spec.controlPlaneEndpoint to be set'
  // A worker cannot join before the control plane is initialized. Control plane machines need not wait, since they are created one by one.
  if (!isControlPlane && !cluster.status.initialization.controlPlaneInitialized) {
    return 'Waiting for Cluster control plane to be initialized'
  }
  return undefined
}

/** Upstream: DefaultTokenTTL of the kubeadm bootstrap provider. */
const DefaultTTLSeconds = 900

const ttlOf = ({ spec }: LocalBootstrapConfig): number => seconds(spec?.ttlSeconds ?? DefaultTTLSeconds)

/** Renews the data at half of their TTL, as long as a machine may join with them. Returns a requeue for the next renewal, if any. */
async function renewData(
  object: LocalBootstrapConfig,
  owner: BootstrapOwner,
  cluster: Cluster,
  io: ReconcileContext,
): Promise<Outcome> {
  if (!owner.mayJoin || !owner.endpoint) return proceed()
  const { namespace, name } = object.metadata
  const secret = await findSecret({ namespace: namespace!, name }, io)
  const expires = parseBootstrapData(secretText(secret, 'value'), secretText(secret, 'format'))?.expires
  if (expires === undefined) return proceed()
  const now = io.clock.now()
  const ttl = ttlOf(object)
  const remaining = Date.parse(expires) - now
  if (remaining > ttl / 2) return requeue(remaining - ttl / 2, 'bootstrap data to be renewed')
  const data = dataOf(object, owner, cluster, now)
  await io.client.patch(Secret, { namespace: namespace!, name }, { type: 'merge', body: { data } })
  return ttl === 0 ? proceed() : requeue(ttl / 2, 'bootstrap data to be renewed')
}

/** Returns the content of the data Secret. */
function dataOf(
  object: LocalBootstrapConfig,
  { isControlPlane, version, endpoint }: BootstrapOwner,
  cluster: Cluster,
  now: number,
): Record<string, string> {
  const { host, port } = endpoint!
  const { format = 'cloud-config', nodeLabels = {}, nodeTaints = [] } = object.spec ?? {}
  const role = isControlPlane ? 'control-plane' : 'worker'
  const ttl = ttlOf(object)
  // The first machine of a control plane does not join an existing cluster, so its data need no expiry.
  const mayExpire = ttl > 0 && cluster.status?.initialization?.controlPlaneInitialized
  const value = formatBootstrapData(
    {
      role,
      clusterName: cluster.metadata.name,
      ...(version === undefined ? {} : { kubernetesVersion: version }),
      controlPlaneEndpoint: `${host}:${port}`,
      ...(mayExpire ? { expires: timeText(now + ttl) } : {}),
      nodeLabels,
      nodeTaints: [roleTaint(role), ...nodeTaints],
    },
    format,
  )
  return secretData({ value, format })
}

async function createDataSecret(
  object: LocalBootstrapConfig,
  owner: BootstrapOwner,
  cluster: Cluster,
  io: ReconcileContext,
): Promise<void> {
  const { namespace, name } = object.metadata
  const desired = {
    metadata: {
      name,
      namespace: namespace!,
      labels: { [ClusterNameLabel]: cluster.metadata.name },
      ownerReferences: [controllerReference(object, LocalBootstrapConfig)],
    },
    type: ClusterSecretType,
    data: dataOf(object, owner, cluster, io.clock.now()),
  }
  const existing = io.cache.peek(Secret, { namespace: namespace!, name }) ?? (await createSecret(desired, io)).existing
  if (existing && !isControlledBy(existing, object, LocalBootstrapConfig)) {
    throw new Error(
      `Cannot create Secret ${namespace}/${name} for bootstrap data: it exists, and this LocalBootstrapConfig does not control it`,
    )
  }
}
