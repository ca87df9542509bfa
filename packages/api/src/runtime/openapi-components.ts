/**
 * Moves inline schemas of hooks into components, so that a code generator makes one type for a Cluster instead of one for each hook. The
 * components have the names of upstream's OpenAPI document.
 */
import type { JSONSchema } from '@capstan/kube'
import { stableText } from '@capstan/kube'

type Components = ReadonlyMap<string, JSONSchema>

/** Packages of upstream's types, by the short names that this file uses. */
const packages = {
  core: 'sigs.k8s.io.cluster-api.api.core.v1beta2',
  hooks: 'sigs.k8s.io.cluster-api.api.runtime.hooks.v1alpha1',
  meta: 'io.k8s.apimachinery.pkg.apis.meta.v1',
} as const

/** Maps each field to the name of the component that is its schema. The key `field[]` means the items of a list. */
type Fields = { readonly [field: string]: string }

const steps = (name: string): Fields => ({ 'controlPlaneUpgrades[]': name, 'workersUpgrades[]': name })
const objectsOf = (hook: string): Fields => ({
  current: `hooks.${hook}RequestObjects`,
  desired: `hooks.${hook}RequestObjects`,
})
const templateItem: Fields = { holderReference: 'hooks.HolderReference', 'variables[]': 'hooks.Variable' }
const healthCheckOf = (topology: string): { readonly [component: string]: Fields } => ({
  [`core.${topology}HealthCheck`]: {
    checks: `core.${topology}HealthCheckChecks`,
    remediation: `core.${topology}HealthCheckRemediation`,
  },
  [`core.${topology}HealthCheckChecks`]: {
    'unhealthyMachineConditions[]': 'core.UnhealthyMachineCondition',
    'unhealthyNodeConditions[]': 'core.UnhealthyNodeCondition',
  },
  [`core.${topology}HealthCheckRemediation`]: {
    templateRef: 'core.MachineHealthCheckRemediationTemplateReference',
    triggerIf: `core.${topology}HealthCheckRemediationTriggerIf`,
  },
})
const machineFields: Fields = { 'readinessGates[]': 'core.MachineReadinessGate', 'taints[]': 'core.MachineTaint' }
const topologyOf = (name: string, variables: string): Fields => ({
  ...machineFields,
  metadata: 'core.ObjectMeta',
  deletion: `core.${name}MachineDeletionSpec`,
  healthCheck: `core.${name}HealthCheck`,
  rollout: `core.${name}RolloutSpec`,
  variables: `core.${variables}`,
})

/** Fields whose component is the same in the requests of all hooks. */
const requestFields: Fields = { cluster: 'core.Cluster', ...steps('hooks.UpgradeStepInfo'), 'variables[]': 'hooks.Variable' }
/** Fields whose component is the same in the responses of all hooks. */
const responseFields: Fields = {
  ...Object.fromEntries(
    [
      'machine',
      'machineSet',
      'infrastructureMachine',
      'infrastructureMachineTemplate',
      'bootstrapConfig',
      'bootstrapConfigTemplate',
    ].map((object) => [`${object}Patch`, 'hooks.Patch']),
  ),
  ...steps('hooks.UpgradeStep'),
  'handlers[]': 'hooks.ExtensionHandler',
  'variables[]': 'core.ClusterClassVariable',
}

const componentFields: { readonly [component: string]: Fields } = {
  'hooks.CanUpdateMachineRequest': objectsOf('CanUpdateMachine'),
  'hooks.CanUpdateMachineSetRequest': objectsOf('CanUpdateMachineSet'),
  'hooks.UpdateMachineRequest': objectsOf('UpdateMachine'),
  'hooks.CanUpdateMachineRequestObjects': { machine: 'core.Machine' },
  'hooks.CanUpdateMachineSetRequestObjects': { machineSet: 'core.MachineSet' },
  'hooks.UpdateMachineRequestObjects': { machine: 'core.Machine' },
  'hooks.GeneratePatchesRequest': { 'items[]': 'hooks.GeneratePatchesRequestItem' },
  'hooks.GeneratePatchesRequestItem': templateItem,
  'hooks.GeneratePatchesResponse': { 'items[]': 'hooks.GeneratePatchesResponseItem' },
  'hooks.ValidateTopologyRequest': { 'items[]': 'hooks.ValidateTopologyRequestItem' },
  'hooks.ValidateTopologyRequestItem': templateItem,
  'hooks.ExtensionHandler': { requestHook: 'hooks.GroupVersionHook' },
  'core.ClusterClassVariable': { deprecatedV1Beta1Metadata: 'core.ClusterClassVariableMetadata', schema: 'core.VariableSchema' },
  'core.JSONSchemaProps': { 'x-kubernetes-validations[]': 'core.ValidationRule', 'x-metadata': 'core.VariableSchemaMetadata' },
  'meta.ObjectMeta': { 'ownerReferences[]': 'meta.OwnerReference' },
  'core.Cluster': { metadata: 'meta.ObjectMeta', spec: 'core.ClusterSpec' },
  'core.ClusterSpec': {
    'availabilityGates[]': 'core.ClusterAvailabilityGate',
    clusterNetwork: 'core.ClusterNetwork',
    controlPlaneEndpoint: 'core.APIEndpoint',
    controlPlaneRef: 'core.ContractVersionedObjectReference',
    infrastructureRef: 'core.ContractVersionedObjectReference',
    topology: 'core.Topology',
  },
  'core.ClusterNetwork': { pods: 'core.NetworkRanges', services: 'core.NetworkRanges' },
  'core.Topology': {
    classRef: 'core.ClusterClassRef',
    controlPlane: 'core.ControlPlaneTopology',
    'variables[]': 'core.ClusterVariable',
    workers: 'core.WorkersTopology',
  },
  'core.WorkersTopology': {
    'machineDeployments[]': 'core.MachineDeploymentTopology',
    'machinePools[]': 'core.MachinePoolTopology',
  },
  'core.ControlPlaneTopology': topologyOf('ControlPlaneTopology', 'ControlPlaneVariables'),
  'core.MachineDeploymentTopology': topologyOf('MachineDeploymentTopology', 'MachineDeploymentVariables'),
  'core.MachinePoolTopology': topologyOf('MachinePoolTopology', 'MachinePoolVariables'),
  ...healthCheckOf('ControlPlaneTopology'),
  ...healthCheckOf('MachineDeploymentTopology'),
  'core.MachineDeploymentTopologyRolloutSpec': { strategy: 'core.MachineDeploymentTopologyRolloutStrategy' },
  'core.MachineDeploymentTopologyRolloutStrategy': {
    rollingUpdate: 'core.MachineDeploymentTopologyRolloutStrategyRollingUpdate',
  },
  'core.ControlPlaneVariables': { 'overrides[]': 'core.ClusterVariable' },
  'core.MachineDeploymentVariables': { 'overrides[]': 'core.ClusterVariable' },
  'core.MachinePoolVariables': { 'overrides[]': 'core.ClusterVariable' },
  'core.Machine': { metadata: 'meta.ObjectMeta', spec: 'core.MachineSpec' },
  'core.MachineSpec': {
    ...machineFields,
    bootstrap: 'core.Bootstrap',
    deletion: 'core.MachineDeletionSpec',
    infrastructureRef: 'core.ContractVersionedObjectReference',
  },
  'core.Bootstrap': { configRef: 'core.ContractVersionedObjectReference' },
  'core.MachineSet': { metadata: 'meta.ObjectMeta', spec: 'core.MachineSetSpec' },
  'core.MachineSetSpec': {
    deletion: 'core.MachineSetDeletionSpec',
    machineNaming: 'core.MachineNamingSpec',
    selector: 'meta.LabelSelector',
    template: 'core.MachineTemplateSpec',
  },
  'core.MachineTemplateSpec': { metadata: 'core.ObjectMeta', spec: 'core.MachineSpec' },
  'meta.LabelSelector': { 'matchExpressions[]': 'meta.LabelSelectorRequirement' },
}

/**
 * Moves each inline schema that has a name in the tables above to a component of this name, and replaces it with a reference. If two
 * schemas of one name differ, the second stays inline. A schema without properties stays inline, too.
 */
export function withSharedComponents(components: Components): { readonly [name: string]: JSONSchema } {
  const shared = new Map<string, { readonly schema: JSONSchema; readonly text: string }>()

  const withReferences = (schema: JSONSchema, name: string): JSONSchema => {
    const fields = fieldsOf(name)
    if (!schema.properties || Object.keys(fields).length === 0) return schema
    const properties = Object.entries(schema.properties).map(([field, inline]) => {
      const component = fields[field]
      const itemComponent = fields[`${field}[]`]
      if (component !== undefined) return [field, referenceTo(inline, component)] as const
      if (itemComponent === undefined || !inline.items) return [field, inline] as const
      return [field, { ...inline, items: referenceTo(inline.items, itemComponent) }] as const
    })
    return { ...schema, properties: Object.fromEntries(properties) }
  }
  const referenceTo = (inline: JSONSchema, name: string): JSONSchema => {
    const { description, ...bare } = inline
    if (!bare.properties) return inline
    const schema = withReferences(bare, name)
    const text = stableText(schema)
    const existing = shared.get(name)
    if (existing && existing.text !== text) return { ...schema, ...(description === undefined ? {} : { description }) }
    if (!existing) shared.set(name, { schema, text })
    const $ref = `#/components/schemas/${longName(name)}`
    // In OpenAPI 3.0, other fields beside a reference are ignored.
    return description === undefined ? { $ref } : { description, allOf: [{ $ref }] }
  }

  const messages = [...components].map(([name, schema]) => [name, withReferences(schema, shortName(name))] as const)
  const all = [...messages, ...[...shared].map(([name, { schema }]) => [longName(name), schema] as const)]
  return Object.fromEntries(all.sort(([a], [b]) => (a < b ? -1 : 1)))
}

function fieldsOf(name: string): Fields {
  const commonFields =
    name.startsWith('hooks.') && (name.endsWith('Request') ? requestFields : name.endsWith('Response') ? responseFields : {})
  return { ...commonFields, ...componentFields[name] }
}

function shortName(name: string): string {
  const entry = Object.entries(packages).find(([, path]) => name.startsWith(`${path}.`))
  return entry ? `${entry[0]}${name.slice(entry[1].length)}` : name
}

function longName(name: string): string {
  const [short, type] = name.split('.') as [keyof typeof packages, string]
  return `${packages[short]}.${type}`
}
