/**
 * Admission rules of Clusters with a topology: the rules that need the ClusterClass or other objects, the rules for changes of the class and
 * the version, and rules of health checks. The schema and the other rules are declared with the kind. Upstream:
 * core/webhooks/admission/cluster.go, v1.14.
 */
import {
  Cluster,
  ClusterClass,
  ClusterNameLabel,
  ClusterTopologyOwnedLabel,
  ClusterTopologyUnsafeUpdateClassNameAnnotation,
  ClusterTopologyUnsafeUpdateVersionAnnotation,
  classIncompatibilities,
  ControlPlaneContract,
  isProvisioning,
  isUpgrading,
  MachineDeployment,
  MachinePool,
  parseVersion,
  readField,
  pendingHooks,
  tryParseVersion,
  versionText,
  healthCheckFieldErrors,
  intOrPercentErrors,
} from '@capstan/api'
import {
  type Admission,
  type AdmissionRequest,
  admission,
  type Clock,
  draft,
  equal,
  type FieldError,
  forbidden,
  invalid,
  isDeleting,
  isReason,
  keyText,
  messageOf,
  orAbsent,
  type Reader,
  seconds,
  sleep,
  withErrorContext,
} from '@capstan/kube'
import { aggregateText } from '../../aggregate-errors.ts'
import { type External, getExternal } from '../../external/get.ts'
import { autoscalerErrors } from '../desired-state/autoscaler.ts'
import { classProblem } from '../blueprint.ts'
import { isUpgradingMachines, isUpgradingNodes } from '../current-state.ts'
import { classKeyOf } from '../../indexes.ts'
import { isDefined } from '../desired-state/health-checks.ts'
import { defaultAndValidateVariables } from '../variables.ts'

type Request = AdmissionRequest<Cluster>

/**
 * Sets defaults of the variables of a Cluster with a topology, validates the Cluster against its class, and validates changes of its class
 * and version.
 *
 * @param clock clock with which admission waits until the class exists and is reconciled. Without a clock, admission does not wait.
 */
export const clusterTopologyAdmission = (clock?: Clock): Admission =>
  admission<Cluster>({
    kind: Cluster,
    operations: ['CREATE', 'UPDATE'],

    async default(cluster, { reader }) {
      if (!cluster.spec.topology || isDeleting(cluster)) return
      const clusterClass = await readReconciledClass(cluster, reader, clock)
      // `validate` reports errors of variables.
      if (clusterClass && classProblem(clusterClass) === undefined) defaultAndValidateVariables(cluster, clusterClass)
    },

    async validate(cluster, request) {
      if (!cluster.spec.topology || isDeleting(cluster)) return []
      const clusterClass = await readReconciledClass(cluster, request.reader, clock)
      return [...classErrors(cluster, clusterClass, request), ...(await changeErrors(cluster, clusterClass, request))]
    },
  })

/**
 * Waiting times in milliseconds: in total, between the first two reads, and at most between two reads. The time between reads doubles after
 * each read. Upstream reads every 200 ms, but a new class is reconciled in a fraction of this time.
 */
const ClassWait = { total: seconds(2), first: 10, longest: 200 }

/**
 * Reads the class of a Cluster. A class that was created together with the Cluster may not be reconciled yet, so the function reads the
 * class again until the class is reconciled, for at most two seconds. As upstream, failed reads are repeated too. Without a clock, the
 * function reads only once.
 *
 * @throws the error of the last read
 */
async function readReconciledClass(
  cluster: Cluster,
  reader: Reader,
  clock: Clock | undefined,
): Promise<ClusterClass | undefined> {
  const read = () => orAbsent(reader.get(ClusterClass, classKeyOf(cluster)))
  if (!clock) return read()
  const end = clock.elapsed() + ClassWait.total
  for (let delay = ClassWait.first; ; delay = Math.min(2 * delay, ClassWait.longest)) {
    const isLast = clock.elapsed() >= end
    try {
      const clusterClass = await read()
      if (isLast || (clusterClass && classProblem(clusterClass) === undefined)) return clusterClass
    } catch (err) {
      if (isLast) throw err
    }
    await sleep(clock, Math.max(0, Math.min(delay, end - clock.elapsed())))
  }
}

/**
 * Returns the errors of a Cluster that violates its class. A missing or unreconciled class leads to a warning, because the class may be
 * created after its Clusters; but an update of the topology needs an existing class.
 */
function classErrors(cluster: Cluster, clusterClass: ClusterClass | undefined, request: Request): FieldError[] {
  const key = keyText(classKeyOf(cluster))
  const warningPrefix = `Cluster refers to ClusterClass ${key}, but this ClusterClass`
  if (!clusterClass) {
    // While the class is missing, upstream rejects every update; here, only updates of the topology are rejected, so that controllers can
    // still update the Cluster.
    const { oldObject: old } = request
    request.warn(
      `${warningPrefix} does not exist. Cluster topology has not been fully validated. The ClusterClass must be created to reconcile the Cluster`,
    )
    const isChanged = old && !equal(old.spec.topology, cluster.spec.topology)
    return isChanged ? [internalError('spec.topology.class', `ClusterClass ${key} not found`)] : []
  }
  const isReconciled = classProblem(clusterClass) === undefined
  if (!isReconciled) {
    request.warn(
      `${warningPrefix} hasn't been successfully reconciled. Cluster topology has not been fully validated. Please take a look at the ClusterClass status`,
    )
  }
  return [
    ...versionErrors(cluster, clusterClass),
    ...workerErrors(cluster, clusterClass),
    ...healthCheckErrors(cluster, clusterClass),
    ...autoscalerErrors(cluster, clusterClass.spec),
    // The status of an unreconciled class may lack variables.
    ...(isReconciled ? defaultAndValidateVariables(draft(cluster), clusterClass, request.oldObject) : []),
  ]
}

function versionErrors({ spec: { topology } }: Cluster, { spec }: ClusterClass): FieldError[] {
  const { version } = topology!
  if (!spec.kubernetesVersions || spec.kubernetesVersions.includes(version)) return []
  return [invalid('spec.topology.version', version, 'version must match one of the versions defined in the ClusterClass')]
}

function workerErrors({ spec: { topology } }: Cluster, clusterClass: ClusterClass): FieldError[] {
  const { machineDeployments = [], machinePools = [] } = topology!.workers ?? {}
  const deploymentErrors = machineDeployments.flatMap((deployment, index) => {
    const listPath = 'spec.topology.workers.machineDeployments'
    const deploymentClass = clusterClass.spec.workers?.machineDeployments?.find(
      (candidate) => candidate.class === deployment.class,
    )
    if (!deploymentClass)
      return [
        invalid(
          `${listPath}[${index}].class`,
          deployment.class,
          missingClass('MachineDeployment', deployment.class, clusterClass),
        ),
      ]
    return []
  })
  const poolErrors = machinePools.flatMap((pool, index) =>
    clusterClass.spec.workers?.machinePools?.some((candidate) => candidate.class === pool.class)
      ? []
      : [
          invalid(
            `spec.topology.workers.machinePools[${index}].class`,
            pool.class,
            missingClass('MachinePool', pool.class, clusterClass),
          ),
        ],
  )
  return [...deploymentErrors, ...poolErrors]
}

function healthCheckErrors({ spec: { topology } }: Cluster, { spec: classSpec }: ClusterClass): FieldError[] {
  const controlPlane = topology!.controlPlane?.healthCheck
  const fieldPath = 'spec.topology.controlPlane.healthCheck'
  const misplaced = 'can be only set if spec.controlPlane.machineInfrastructure is set in ClusterClass'
  return [
    ...(isDefined(controlPlane) && !classSpec.controlPlane.machineInfrastructure ? [forbidden(fieldPath, misplaced)] : []),
    ...healthCheckFieldErrors(fieldPath, controlPlane),
    ...undefinedCheckErrors(fieldPath, controlPlane, classSpec.controlPlane.healthCheck),
    ...(topology!.workers?.machineDeployments ?? []).flatMap(({ name, class: className, healthCheck }) => {
      const checkPath = `spec.topology.workers.machineDeployments[${name}].healthCheck`
      const workerClass = classSpec.workers?.machineDeployments?.find((candidate) => candidate.class === className)
      return [
        ...healthCheckFieldErrors(checkPath, healthCheck),
        ...intOrPercentErrors(`${checkPath}.remediation.maxInFlight`, healthCheck?.remediation?.maxInFlight),
        ...(workerClass ? undefinedCheckErrors(checkPath, healthCheck, workerClass.healthCheck) : []),
      ]
    }),
  ]
}

type HealthCheck = Parameters<typeof isDefined>[0] & { readonly enabled?: boolean }

/**
 * Returns an error for a health check that is enabled, but defined neither in the topology nor in the class. As upstream, the path ends in
 * the field's v1beta1 name.
 */
function undefinedCheckErrors(
  fieldPath: string,
  healthCheck: HealthCheck | undefined,
  healthCheckOfClass: Parameters<typeof isDefined>[0],
): FieldError[] {
  if (!healthCheck?.enabled || isDefined(healthCheck) || isDefined(healthCheckOfClass)) return []
  const reason = 'cannot be set to true as healthCheck definition is not available in the Cluster topology or the ClusterClass'
  return [forbidden(`${fieldPath}.enable`, reason)]
}

async function changeErrors(cluster: Cluster, clusterClass: ClusterClass | undefined, request: Request): Promise<FieldError[]> {
  const { oldObject: old } = request
  if (!old || !clusterClass) return []
  if (!old.spec.topology) {
    const unchecked = cluster.metadata.annotations?.[ClusterTopologyUnsafeUpdateClassNameAnnotation] !== undefined
    return unchecked ? [] : [forbidden('spec.topology.class', 'classRef cannot be set on an existing Cluster')]
  }
  return [
    ...(await versionChangeErrors(cluster, old, clusterClass, request)),
    ...(await classChangeErrors(cluster, old, clusterClass, request)),
  ]
}

async function classChangeErrors(
  cluster: Cluster,
  old: Cluster,
  clusterClass: ClusterClass,
  { reader }: Request,
): Promise<FieldError[]> {
  if (equal(classKeyOf(cluster), classKeyOf(old))) return []
  const [from, to] = [old, cluster].map((object) => JSON.stringify(keyText(classKeyOf(object))))
  let oldClass: ClusterClass
  try {
    oldClass = await reader.get(ClusterClass, classKeyOf(old))
  } catch (err) {
    const change = `change from class ${from} to class ${to} cannot be validated`
    const reason = isReason(err, 'NotFound')
      ? `ClusterClass.cluster.x-k8s.io ${JSON.stringify(classKeyOf(old).name)} not found`
      : messageOf(err)
    return [
      forbidden(
        'spec.topology.class',
        `valid ClusterClass with name ${from} could not be retrieved, ${change}. Error: ${reason}`,
      ),
    ]
  }
  return classIncompatibilities(oldClass.spec, clusterClass.spec)
}

/**
 * Returns an error for a lower version, for an upgrade by two or more minor versions if the class has neither `kubernetesVersions` nor an
 * extension that plans upgrades, and for a change before the previous upgrade is complete. As upstream, the comparison of the versions
 * ignores pre-releases.
 */
async function versionChangeErrors(
  cluster: Cluster,
  old: Cluster,
  clusterClass: ClusterClass,
  request: Request,
): Promise<FieldError[]> {
  const oldVersion = old.spec.topology!.version
  const { version } = cluster.spec.topology!
  if (cluster.metadata.annotations?.[ClusterTopologyUnsafeUpdateVersionAnnotation] !== undefined) {
    request.warn(
      `Skipping version validation for Cluster because annotation "${ClusterTopologyUnsafeUpdateVersionAnnotation}" is set.`,
    )
    return []
  }
  // The rules declared with the kind report an invalid version. Here, as upstream, such a version counts as neither lower nor too high.
  const [from, to] = [tryParseVersion(oldVersion), tryParseVersion(version)]
  if (!from || (to && versionText(from) === versionText(to))) return []
  const rejected = (reason: string) => [invalid('spec.topology.version', version, reason)]
  if (to) {
    const change = `from ${JSON.stringify(withoutV(versionText(from)))} to ${JSON.stringify(withoutV(versionText(to)))}`
    if (to.compareMain(from) < 0) return rejected(`version cannot be decreased ${change}`)
    const canSkipMinors =
      clusterClass.spec.kubernetesVersions || clusterClass.spec.upgrade?.external?.generateUpgradePlanExtension
    if (!canSkipMinors && to.compareMain(`${from.major}.${from.minor + 2}.0`) >= 0)
      return rejected(`version cannot be increased ${change}`)
  }
  if (pendingHooks(cluster).has('AfterClusterUpgrade')) {
    return rejected('version cannot be changed when the "AfterClusterUpgrade" hook is still blocking')
  }
  const problems: string[] = []
  for (const check of [checkControlPlane, checkMachineDeployments, checkMachinePools]) {
    try {
      await check(old, from, request.reader)
    } catch (err) {
      problems.push(messageOf(err))
    }
  }
  return problems.length === 0 ? [] : rejected(`version cannot be changed: ${aggregateText(problems)}`)
}

type SemVer = ReturnType<typeof parseVersion>

const withoutV = (version: string): string => version.replace(/^v/, '')

/** @throws Error when the control plane has not reached the Cluster's previous version, is provisioning or upgrading, or cannot be read */
async function checkControlPlane(old: Cluster, oldVersion: SemVer, reader: Reader): Promise<void> {
  const problem = 'failed to check if control plane is upgrading'
  const { object, contract } = await withErrorContext(`${problem}: failed to get control plane object`, () =>
    controlPlaneOf(old, reader),
  )
  const version = readField(object, ControlPlaneContract.version, contract)
  if (version === undefined) throw new Error(`${problem}: failed to get control plane version`)
  const parsed = parseVersion(version, `${problem}: failed to parse control plane version ${version}`)
  if (versionText(parsed) !== versionText(oldVersion)) {
    const versions = `${withoutV(versionText(oldVersion))} was not propagated to control plane yet (control plane version ${withoutV(versionText(parsed))})`
    throw new Error(`Cluster.spec.topology.version ${versions}`)
  }
  if (isProvisioning(object, contract)) throw new Error('control plane is currently provisioning')
  if (withErrorContext(problem, () => isUpgrading(object, contract)))
    throw new Error('control plane is still completing a previous upgrade')
}

async function controlPlaneOf({ metadata, spec }: Cluster, reader: Reader): Promise<External> {
  const ref = spec.controlPlaneRef
  if (!ref) throw new Error('cannot get object - object reference not set')
  const namespace = metadata.namespace!
  const external = await withErrorContext('failed to get object from ref', () => getExternal(reader, ref, namespace))
  if (external) return external
  const missing = `${ref.kind}.${ref.apiGroup} "${ref.name}" not found`
  throw new Error(`failed to retrieve ${ref.kind} ${namespace}/${ref.name}: ${missing}`)
}

/** @throws Error that names the MachineDeployments that have not completed the upgrade to the Cluster's previous version */
async function checkMachineDeployments(old: Cluster, oldVersion: SemVer, reader: Reader): Promise<void> {
  const upgrading: string[] = []
  for (const deployment of (await reader.list(MachineDeployment, topologyOwned(old))).items) {
    const isSettled = hasVersion(deployment, oldVersion) && !(await isUpgradingMachines(deployment, reader))
    if (!isSettled) upgrading.push(deployment.metadata.name)
  }
  throwUpgrading('MachineDeployments', upgrading)
}

/** @throws Error that names the MachinePools that have not completed the upgrade to the Cluster's previous version */
async function checkMachinePools(old: Cluster, oldVersion: SemVer, reader: Reader): Promise<void> {
  const { items } = await reader.list(MachinePool, topologyOwned(old))
  const upgrading = items.filter((pool) => !hasVersion(pool, oldVersion) || isUpgradingNodes(pool))
  throwUpgrading(
    'MachinePools',
    upgrading.map((pool) => pool.metadata.name),
  )
}

const topologyOwned = ({ metadata }: Cluster) => ({
  namespace: metadata.namespace!,
  labelSelector: `${ClusterNameLabel}=${metadata.name},${ClusterTopologyOwnedLabel}=`,
})

function hasVersion({ kind, metadata, spec }: MachineDeployment | MachinePool, version: SemVer): boolean {
  const { version: text = '' } = spec.template.spec
  const problem = `failed to check if ${kind} ${metadata.name} is upgrading: failed to parse version ${text}`
  return versionText(parseVersion(text, problem)) === versionText(version)
}

function throwUpgrading(kinds: string, names: readonly string[]): void {
  if (names.length === 0) return
  throw new Error(`there are still ${kinds} completing a previous upgrade: [${names.toSorted().join(', ')}]`)
}

const missingClass = (
  kind: 'MachineDeployment' | 'MachinePool',
  name: string,
  { metadata }: Pick<ClusterClass, 'metadata'>,
): string => `${kind}Class with name "${name}" does not exist in ClusterClass "${metadata.name}"`

const internalError = (field: string, message: string): FieldError => ({
  type: 'InternalError',
  field,
  text: `Internal error: ${message}`,
})
