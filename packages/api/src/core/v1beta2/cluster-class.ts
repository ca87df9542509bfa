/** The kind ClusterClass, a template for Clusters. Upstream: api/core/v1beta2/clusterclass_types.go, v1.14. */
import type { Infer, ObjectOf } from '@capstan/kube'
import { column, conditionTypes, defineKind, s } from '@capstan/kube'
import { olderVersions } from '../../conversion/older-versions.ts'
import { clusterClassErrors } from './admission/cluster-class.ts'
import { ageColumn, pausedColumn } from './shared/columns.ts'
import { failureDomain, minReadySeconds, observedGeneration } from './shared/common-fields.ts'
import { conditionGates } from './shared/condition-gates.ts'
import { coreLabels } from './shared/core-labels.ts'
import { controlPlaneClassHealthCheck, machineDeploymentClassHealthCheck } from './shared/health-check.ts'
import { legacyStatus } from './shared/legacy-status.ts'
import { groupVersion, kindName, nonEmpty, shortText } from './shared/limits.ts'
import { machineDeletion, machineDeploymentTopologyDeletion } from './shared/machine-deletion.ts'
import { machineTaints } from './shared/machine-taints.ts'
import { naming } from './shared/naming.ts'
import { objectMeta } from './shared/object-meta.ts'
import { templateReference } from './shared/references.ts'
import { machineDeploymentClassRollout } from './shared/rollout-strategy.ts'
import { variableSchema } from './shared/variables.ts'

/** Name of a handler, in the form `<handler>.<extensionconfig>`. */
const extensionHandler = s.string({ minLength: 1, maxLength: 512 })

// Patches

const classNames = s
  .object({ names: s.list(s.string(shortText), { maxItems: 100 }).atomic().optional() })
  .doc('Names of classes. A name may begin or end with an asterisk, which matches any text.')

const patchSelector = s
  .object({
    apiVersion: s.string({ minLength: 1, maxLength: 317, pattern: groupVersion }).doc('API group and version of the template.'),
    kind: s.string({ minLength: 1, maxLength: 63, pattern: kindName }).doc('Kind of the template.'),
    matchResources: s
      .object(
        {
          controlPlane: s
            .boolean()
            .optional()
            .doc('Selects the template of the control plane, or that of the infrastructure of its Machines.'),
          infrastructureCluster: s.boolean().optional().doc('Selects the template of the infrastructure of the Cluster.'),
          machineDeploymentClass: classNames.optional(),
          machinePoolClass: classNames.optional(),
        },
        nonEmpty,
      )
      .doc('Selects the parts of the class that refer to the template.'),
  })
  .doc('Selects the templates that a patch changes.')
export interface PatchSelector extends Infer<typeof patchSelector> {}

const jsonPatch = s
  .object({
    op: s.enum('add', 'replace', 'remove').doc('Operation at the path.'),
    path: s.string({ minLength: 1, maxLength: 512 }).doc('JSON pointer to a field below /spec.'),
    value: s.any().optional().doc('A fixed value.'),
    valueFrom: s
      .object({
        variable: s.string(shortText).optional().doc('Path of a variable, such as builtin.cluster.name.'),
        template: s.string({ minLength: 1, maxLength: 10240 }).optional().doc('Go template whose output is YAML.'),
      })
      .optional()
      .doc('A value from a variable, or from a Go template with the variables.'),
  })
  .doc('One JSON patch operation on a template.')
export interface JSONPatch extends Infer<typeof jsonPatch> {}

const patchDefinition = s
  .object({
    selector: patchSelector,
    jsonPatches: s.list(jsonPatch, { minItems: 1, maxItems: 100 }).atomic().doc('JSON patch operations, in order.'),
  })
  .doc('Operations on the templates that the selector matches.')
export interface PatchDefinition extends Infer<typeof patchDefinition> {}

const externalPatch = s
  .object({
    generatePatchesExtension: extensionHandler.optional().doc('Handler that computes the patch.'),
    validateTopologyExtension: extensionHandler.optional().doc('Handler that checks the topology after all patches.'),
    discoverVariablesExtension: extensionHandler.optional().doc('Handler that declares variables.'),
    settings: s.map(s.string()).optional().doc('Settings that are sent to the extension with every call.'),
  })
  .doc('A patch computed by a Runtime Extension.')
export interface ExternalPatchDefinition extends Infer<typeof externalPatch> {}

const classPatch = s
  .object({
    name: s.string(shortText).doc('Unique within the class.'),
    description: s.string({ minLength: 1, maxLength: 1024 }).optional().doc('Purpose of the patch.'),
    enabledIf: s
      .string(shortText)
      .optional()
      .doc('Go template with the variables: the patch applies if the output is true. When absent, the patch always applies.'),
    definitions: s
      .list(patchDefinition, { maxItems: 100 })
      .atomic()
      .optional()
      .doc('Inline patches. Either definitions or external must be set.'),
    external: externalPatch.optional(),
  })
  .doc('One patch: inline or external.')
export interface ClusterClassPatch extends Infer<typeof classPatch> {}

// Variables

const classVariable = s
  .object({
    name: s.string(shortText).doc('Name of the variable, without dots; `builtin` is reserved.'),
    required: s.boolean().doc('Whether every Cluster must have a value for the variable.'),
    schema: variableSchema,
    deprecatedV1Beta1Metadata: objectMeta.optional().doc('Metadata of the variable, for v1beta1.'),
  })
  .doc('A variable that Clusters of this class can set.')
export interface ClusterClassVariable extends Infer<typeof classVariable> {}

const statusVariable = s
  .object({
    name: s.string(shortText).doc('Name of the variable.'),
    definitionsConflict: s.boolean().optional().doc('True when definitions of the variable differ.'),
    definitions: s
      .list(
        s.object({
          from: s.string(shortText).doc('`inline`, or the name of the patch whose extension defines the variable.'),
          required: s.boolean().doc('Whether every Cluster must have a value for the variable.'),
          schema: variableSchema,
          deprecatedV1Beta1Metadata: objectMeta.optional().doc('Metadata of the variable, for v1beta1.'),
        }),
        { minItems: 1, maxItems: 100 },
      )
      .atomic(),
  })
  .doc('A variable with each of its definitions, inline and from extensions.')
export interface ClusterClassStatusVariable extends Infer<typeof statusVariable> {}

// Templates

const fromTemplate = s.object({ templateRef: templateReference })

const infrastructureClass = s
  .object({ templateRef: templateReference, naming: naming.optional() })
  .doc('The infrastructure of Clusters of this class.')
export interface InfrastructureClass extends Infer<typeof infrastructureClass> {}

const controlPlaneClass = s
  .object({
    metadata: objectMeta.optional(),
    templateRef: templateReference,
    machineInfrastructure: fromTemplate
      .optional()
      .doc('Infrastructure of control plane Machines, for control planes that run on Machines.'),
    healthCheck: controlPlaneClassHealthCheck,
    naming: naming.optional(),
    deletion: machineDeletion.optional(),
    taints: machineTaints.optional(),
    readinessGates: conditionGates.optional(),
  })
  .doc('The control plane of Clusters of this class.')
export interface ControlPlaneClass extends Infer<typeof controlPlaneClass> {}

const workersClass = {
  class: s.string(shortText).doc('Name of the class, unique within the ClusterClass.'),
  metadata: objectMeta.optional(),
  bootstrap: fromTemplate.doc('Template of the bootstrap configs of Machines.'),
  infrastructure: fromTemplate.doc('Template of the infrastructure of Machines.'),
  naming: naming.optional(),
  minReadySeconds,
  taints: machineTaints.optional(),
}

const machineDeploymentClass = s
  .object({
    ...workersClass,
    healthCheck: machineDeploymentClassHealthCheck,
    failureDomain,
    deletion: machineDeploymentTopologyDeletion.optional(),
    readinessGates: conditionGates.optional(),
    rollout: machineDeploymentClassRollout,
  })
  .doc('A class of MachineDeployments, for Clusters of this class.')
export interface MachineDeploymentClass extends Infer<typeof machineDeploymentClass> {}

const machinePoolClass = s
  .object({
    ...workersClass,
    failureDomains: s
      .list(s.string(shortText), { maxItems: 100 })
      .atomic()
      .optional()
      .doc('Failure domains in which machines are placed. Each is one of those in the status of the Cluster.'),
    deletion: machineDeletion.optional(),
  })
  .doc('A class of MachinePools, for Clusters of this class.')
export interface MachinePoolClass extends Infer<typeof machinePoolClass> {}

const upgrade = s
  .object(
    {
      external: s
        .object(
          { generateUpgradePlanExtension: extensionHandler.optional().doc('Handler that returns the steps of an upgrade.') },
          nonEmpty,
        )
        .optional(),
    },
    nonEmpty,
  )
  .doc('How Clusters of the class are upgraded.')

const clusterClassSpec = s.object({
  availabilityGates: conditionGates.optional(),
  infrastructure: infrastructureClass,
  controlPlane: controlPlaneClass,
  workers: s
    .object(
      {
        machineDeployments: s
          .list(machineDeploymentClass, { minItems: 1, maxItems: 100 })
          .listMap('class')
          .optional()
          .doc('Classes of MachineDeployments.'),
        machinePools: s
          .list(machinePoolClass, { minItems: 1, maxItems: 100 })
          .listMap('class')
          .optional()
          .doc('Classes of MachinePools.'),
      },
      nonEmpty,
    )
    .optional()
    .doc('Classes of worker Machines, for Clusters of this class.'),
  variables: s
    .list(classVariable, { minItems: 1, maxItems: 1000 })
    .atomic()
    .optional()
    .doc('Variables that Clusters set and patches read.'),
  patches: s
    .list(classPatch, { minItems: 1, maxItems: 1000 })
    .atomic()
    .optional()
    .doc('Patches of the templates, applied in order.'),
  upgrade: upgrade.optional(),
  kubernetesVersions: s
    .list(s.string(shortText), { minItems: 1, maxItems: 100 })
    .atomic()
    .optional()
    .doc(
      'Kubernetes versions that Clusters of the class may have, ascending. Without a generateUpgradePlanExtension, an upgrade of the control plane takes one step for each minor version: to the last listed version of this minor version that is not above the requested version.',
    ),
})
export interface ClusterClassSpec extends Infer<typeof clusterClassSpec> {}

const clusterClassStatus = s.object(
  {
    conditions: s.conditions(),
    variables: s
      .list(statusVariable, { maxItems: 1000 })
      .atomic()
      .optional()
      .doc('All variables, by name, from the class itself and from extensions.'),
    observedGeneration,
    deprecated: legacyStatus(),
  },
  nonEmpty,
)
export interface ClusterClassStatus extends Infer<typeof clusterClassStatus> {}

export const ClusterClassConditions = conditionTypes({
  VariablesReady: ['VariablesReady', 'VariableDiscoveryFailed'],
  RefVersionsUpToDate: ['RefVersionsUpToDate', 'RefVersionsNotUpToDate', 'InternalError'],
  Paused: ['Paused', 'NotPaused'],
})

export const ClusterClass = defineKind({
  group: 'cluster.x-k8s.io',
  version: 'v1beta2',
  kind: 'ClusterClass',
  plural: 'clusterclasses',
  shortNames: ['cc'],
  categories: ['cluster-api'],
  scope: 'Namespaced',
  doc: 'A class of Clusters: the templates from which their objects are created, the variables that Clusters set, and the patches that apply the variables to the templates.',
  spec: clusterClassSpec,
  status: clusterClassStatus,
  columns: [
    pausedColumn,
    column('Variables Ready', '.status.conditions[?(@.type=="VariablesReady")].status', {
      description: 'Variables are discovered',
    }),
    ageColumn,
  ],
  labels: coreLabels,
  versions: olderVersions('cluster.x-k8s.io', 'ClusterClass'),
  validate: clusterClassErrors,
})
export interface ClusterClass extends ObjectOf<typeof ClusterClass> {
  spec: ClusterClassSpec
  status?: ClusterClassStatus
}
