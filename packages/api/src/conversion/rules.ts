/**
 * Conversion rules between Go types of older API versions and those of v1beta2, for conversions that do not follow from equal field names.
 * Upstream: api/<group>/<version>/conversion.go and core/webhooks/conversion, v1.14.
 */
import { type GroupKind, isRecord, parseApiVersion } from '@capstan/kube'
import { durationOf, secondsOf } from './duration-seconds.ts'
import type { Struct } from './go-types.ts'

/** Inputs of a conversion that are not part of the converted value. */
export interface ConversionScope {
  /** Namespace of the object. In older versions, its references to namespaced objects contain this namespace. */
  readonly namespace: string | undefined
  /** Returns the apiVersion that a reference to the kind has in an older version. */
  apiVersionOf(kind: GroupKind): string
}

/** A value that has another path, and possibly another format, in the older version. */
export interface Move {
  /** Path in the older version. */
  readonly older: readonly string[]
  /** Path in v1beta2, the version in which objects are stored. */
  readonly stored: readonly string[]
  readonly converter?: ValueConverter
}

/** Converts a value between the formats of both versions: `up` to v1beta2, `down` to the older version. */
export interface ValueConverter {
  up(value: unknown): unknown
  down(value: unknown, scope: ConversionScope): unknown
  /** Whether the older version has the field even when v1beta2 has no value. */
  readonly always?: true
}

/** Rule for the conversion between a Go type of an older version and the corresponding type of v1beta2, in both directions. */
export interface TypeRule {
  readonly moves?: readonly Move[]
  /** Fields that are not copied by name: those with another meaning in the other version, and those that `up` and `down` convert. */
  readonly skip?: ReadonlySet<string>
  /** Completes the value of v1beta2. */
  up?(older: Struct, stored: Struct): void
  /** Completes the value of the older version. */
  down?(stored: Struct, older: Struct, scope: ConversionScope): void
}

const move = (older: string, stored: string, converter?: ValueConverter): Move => ({
  older: older.split('.'),
  stored: stored.split('.'),
  ...(converter ? { converter } : {}),
})

const seconds: ValueConverter = { up: (value) => secondsOf(value as string), down: (value) => durationOf(value as number) }

const unhealthyConditions: ValueConverter = {
  up: (value) =>
    nonEmpty(
      (value as Struct[]).map(({ timeout, ...condition }) => ({
        ...condition,
        timeoutSeconds: secondsOf((timeout ?? '0s') as string),
      })),
    ),
  down: (value) =>
    nonEmpty(
      (value as Struct[]).map(({ timeoutSeconds, ...condition }) => ({
        ...condition,
        timeout: durationOf((timeoutSeconds ?? 0) as number),
      })),
    ),
}
const nonEmpty = <T>(list: readonly T[]): readonly T[] | undefined => (list.length === 0 ? undefined : list)

const pick = (value: unknown, fields: readonly string[]): Struct =>
  Object.fromEntries(fields.flatMap((name) => (isRecord(value) && value[name] !== undefined ? [[name, value[name]]] : [])))

const namespaced = ({ namespace }: ConversionScope): Struct => (namespace ? { namespace } : {})

/** Converts a reference to a template. Unlike other references, it has an apiVersion in v1beta2, too. */
const template: ValueConverter = {
  up: (value) => pick(value, ['apiVersion', 'kind', 'name']),
  down: (value, scope) => ({ ...pick(value, ['apiVersion', 'kind', 'name']), ...namespaced(scope) }),
}
const templateAlways: ValueConverter = { ...template, always: true }

const timeouts = ['nodeDrainTimeout', 'nodeVolumeDetachTimeout', 'nodeDeletionTimeout'].map((name) =>
  move(name, `deletion.${name}Seconds`, seconds),
)

const checks = (older: string, stored: string): Move[] => [
  move(`${older}unhealthyConditions`, `${stored}checks.unhealthyNodeConditions`, unhealthyConditions),
  move(`${older}unhealthyMachineConditions`, `${stored}checks.unhealthyMachineConditions`, unhealthyConditions),
  move(`${older}nodeStartupTimeout`, `${stored}checks.nodeStartupTimeoutSeconds`, seconds),
  move(`${older}maxUnhealthy`, `${stored}remediation.triggerIf.unhealthyLessThanOrEqualTo`),
  move(`${older}unhealthyRange`, `${stored}remediation.triggerIf.unhealthyInRange`),
  move(`${older}remediationTemplate`, `${stored}remediation.templateRef`, template),
]
const healthCheck = checks('machineHealthCheck.', 'healthCheck.')

const strategy = (maxInFlight: string): Move[] => [
  move('strategy.type', 'rollout.strategy.type'),
  move('strategy.rollingUpdate.maxUnavailable', 'rollout.strategy.rollingUpdate.maxUnavailable'),
  move('strategy.rollingUpdate.maxSurge', 'rollout.strategy.rollingUpdate.maxSurge'),
  move('strategy.rollingUpdate.deletePolicy', 'deletion.order'),
  move('strategy.remediation.maxInFlight', maxInFlight),
]

const classTemplates = [
  move('template.metadata', 'metadata'),
  move('template.bootstrap.ref', 'bootstrap.templateRef', templateAlways),
  move('template.infrastructure.ref', 'infrastructure.templateRef', templateAlways),
]
const naming = move('namingStrategy.template', 'naming.template')
const machineNaming = move('machineNamingStrategy.template', 'machineNaming.template')
const initialization = (older: string, stored: string): Move => move(older, `initialization.${stored}`)

interface StatusFields {
  /** Fields of the older status that v1beta2 keeps in `deprecated.v1beta1`. */
  readonly deprecated: readonly string[]
  /** Fields of the status of v1beta2 that the older version has in `v1beta2`. */
  readonly current: readonly string[]
  /** Whether v1beta2 has `deprecated.v1beta1` even when the object has none of the deprecated fields. */
  readonly always?: true
}

/**
 * Returns the rule for a status. Conditions and some counters, such as readyReplicas, have the same names but different meanings in the two
 * versions. Therefore each version contains those of the other version in a subobject, with some fields that only the other version has.
 */
function status({ deprecated, current, always }: StatusFields, rule: TypeRule = {}): TypeRule {
  return {
    moves: rule.moves ?? [],
    skip: new Set([...deprecated, ...current, ...(rule.skip ?? [])]),
    up(older, stored) {
      Object.assign(stored, pick(older.v1beta2, current))
      const legacy = pick(older, deprecated)
      if (always || Object.keys(legacy).length > 0) stored.deprecated = { v1beta1: legacy }
      rule.up?.(older, stored)
    },
    down(stored, older, scope) {
      Object.assign(older, pick((stored.deprecated as Struct | undefined)?.v1beta1, deprecated))
      const picked = pick(stored, current)
      if (Object.keys(picked).length > 0) older.v1beta2 = picked
      rule.down?.(stored, older, scope)
    },
  }
}

const conditionsOnly = status({ deprecated: ['conditions'], current: ['conditions'] })
const failures = ['failureReason', 'failureMessage']
const counters = ['readyReplicas', 'availableReplicas', 'upToDateReplicas']

const failureDomains: TypeRule = {
  up({ failureDomains }, stored) {
    if (!isRecord(failureDomains)) return
    const names = Object.keys(failureDomains).sort()
    stored.failureDomains = names.map((name) => {
      const domain = failureDomains[name] as Struct
      return { name, controlPlane: domain.controlPlane ?? false, ...pick(domain, ['attributes']) }
    })
  },
  down({ failureDomains }, older) {
    if (!Array.isArray(failureDomains)) return
    older.failureDomains = Object.fromEntries(
      (failureDomains as Struct[]).map((domain) => [
        domain.name ?? '',
        { ...(domain.controlPlane ? { controlPlane: true } : {}), ...pick(domain, ['attributes']) },
      ]),
    )
  },
}

const contractReference: TypeRule = {
  skip: new Set(['apiVersion', 'apiGroup']),
  up({ apiVersion }, stored) {
    if (typeof apiVersion !== 'string') return
    if (apiVersion.split('/').length > 2)
      throw new Error(`failed to convert object: failed to parse apiVersion: unexpected GroupVersion string: ${apiVersion}`)
    const { group } = parseApiVersion(apiVersion)
    if (group !== '') stored.apiGroup = group
  },
  down(stored, older, scope) {
    if (Object.keys(stored).length === 0) return
    const { apiGroup = '', kind = '' } = stored
    older.apiVersion = scope.apiVersionOf({ group: apiGroup as string, kind: kind as string })
    Object.assign(older, namespaced(scope))
  },
}

/**
 * Rules by the Go type of the older version, without package and version. If a type of the older version corresponds to several types of
 * v1beta2, the key also contains `>` and the type of v1beta2.
 */
const byName: { readonly [types: string]: TypeRule } = {
  'ObjectReference>ContractVersionedObjectReference': contractReference,
  'ObjectReference>MachineNodeReference': {
    down: ({ name }, older) => void (name && Object.assign(older, { apiVersion: 'v1', kind: 'Node' })),
  },
  Topology: { moves: [move('class', 'classRef.name'), move('classNamespace', 'classRef.namespace')] },
  ControlPlaneTopology: { moves: [...timeouts, move('machineHealthCheck.enable', 'healthCheck.enabled'), ...healthCheck] },
  MachineDeploymentTopology: {
    moves: [
      ...timeouts,
      move('machineHealthCheck.enable', 'healthCheck.enabled'),
      ...healthCheck,
      ...strategy('healthCheck.remediation.maxInFlight'),
    ],
  },
  MachinePoolTopology: { moves: timeouts },
  ClusterStatus: status(
    { deprecated: ['conditions', ...failures], current: ['conditions', 'controlPlane', 'workers'] },
    {
      moves: [
        initialization('controlPlaneReady', 'controlPlaneInitialized'),
        initialization('infrastructureReady', 'infrastructureProvisioned'),
      ],
      skip: new Set(['failureDomains']),
      ...failureDomains,
    },
  ),
  ClusterClassSpec: {
    moves: [
      move('infrastructure.ref', 'infrastructure.templateRef', templateAlways),
      move('infrastructureNamingStrategy.template', 'infrastructure.naming.template'),
    ],
  },
  ControlPlaneClass: {
    moves: [
      move('ref', 'templateRef', templateAlways),
      move('machineInfrastructure.ref', 'machineInfrastructure.templateRef', template),
      naming,
      ...timeouts,
      ...healthCheck,
    ],
  },
  MachineDeploymentClass: {
    moves: [...classTemplates, naming, ...timeouts, ...healthCheck, ...strategy('healthCheck.remediation.maxInFlight')],
  },
  MachinePoolClass: { moves: [...classTemplates, naming, ...timeouts] },
  ExternalPatchDefinition: {
    moves: [move('generateExtension', 'generatePatchesExtension'), move('validateExtension', 'validateTopologyExtension')],
  },
  ClusterClassVariable: { moves: [move('metadata', 'deprecatedV1Beta1Metadata')] },
  ClusterClassStatusVariableDefinition: { moves: [move('metadata', 'deprecatedV1Beta1Metadata')] },
  ClusterClassStatus: conditionsOnly,
  MachineSpec: { moves: timeouts },
  MachineStatus: status(
    { deprecated: ['conditions', ...failures], current: ['conditions'] },
    {
      moves: [
        initialization('bootstrapReady', 'bootstrapDataSecretCreated'),
        initialization('infrastructureReady', 'infrastructureProvisioned'),
      ],
      down(_, older) {
        // The older version does not have this phase.
        if (older.phase === 'Updating') older.phase = 'Running'
      },
    },
  ),
  MachineSetSpec: {
    moves: [move('minReadySeconds', 'template.spec.minReadySeconds'), move('deletePolicy', 'deletion.order'), machineNaming],
  },
  MachineSetStatus: status({
    deprecated: ['conditions', ...failures, 'readyReplicas', 'availableReplicas', 'fullyLabeledReplicas'],
    current: ['conditions', ...counters],
    always: true,
  }),
  MachineDeploymentSpec: {
    moves: [
      move('minReadySeconds', 'template.spec.minReadySeconds'),
      move('rolloutAfter', 'rollout.after'),
      machineNaming,
      ...strategy('remediation.maxInFlight'),
    ],
  },
  MachineDeploymentStatus: status({
    deprecated: ['conditions', 'readyReplicas', 'availableReplicas', 'updatedReplicas', 'unavailableReplicas'],
    current: ['conditions', ...counters],
    always: true,
  }),
  MachinePoolSpec: { moves: [move('minReadySeconds', 'template.spec.minReadySeconds')] },
  MachinePoolStatus: status(
    {
      deprecated: ['conditions', ...failures, 'readyReplicas', 'availableReplicas', 'unavailableReplicas'],
      current: ['conditions', ...counters],
      always: true,
    },
    {
      moves: [
        initialization('bootstrapReady', 'bootstrapDataSecretCreated'),
        initialization('infrastructureReady', 'infrastructureProvisioned'),
      ],
    },
  ),
  MachineHealthCheckSpec: { moves: checks('', '') },
  MachineHealthCheckStatus: conditionsOnly,
  ClusterResourceSetStatus: conditionsOnly,
  IPAddressClaimStatus: conditionsOnly,
  ExtensionConfigStatus: conditionsOnly,
}

const shortName = (type: string): string => type.slice(type.lastIndexOf('.') + 1)

/** Returns the rule for a Go type of an older version and a type of v1beta2; a rule without members if none is declared. */
export function ruleOf(older: string, stored: string): TypeRule {
  return byName[`${shortName(older)}>${shortName(stored)}`] ?? byName[shortName(older)] ?? {}
}
