/** ClusterClass: a template for Clusters. Upstream: api/core/v1beta2/clusterclass_types.go, v1.14. */
import type { Infer, ObjectOf } from '@capstan/kube'
import { column, conditionTypes, defineKind, s } from '@capstan/kube'
import { clusterClassErrors } from './admission/cluster-class.ts'
import { conditionGates } from './shared/condition-gates.ts'
import { contractLabels } from './shared/crd-labels.ts'
import { healthChecks, remediationTrigger } from './shared/health-check.ts'
import { legacyConditions } from './shared/legacy-status.ts'
import { machineDeploymentDeletion, nodeDeletion } from './shared/machine-deletion.ts'
import { machineTaints } from './shared/machine-taints.ts'
import { naming } from './shared/naming.ts'
import { objectMeta } from './shared/object-meta.ts'
import { groupVersion, kindName } from './shared/patterns.ts'
import { templateReference } from './shared/references.ts'
import { rolloutStrategy } from './shared/rollout-strategy.ts'
import { variableSchema } from './shared/variables.ts'

const patchSelector = s
  .object({
    apiVersion: s.string({ minLength: 1, maxLength: 317, pattern: groupVersion }).doc('API group and version of the object.'),
    kind: s.string({ minLength: 1, maxLength: 63, pattern: kindName }),
    matchResources: s
      .object(
        {
          controlPlane: s.boolean().optional(),
          infrastructureCluster: s.boolean().optional(),
          machineDeploymentClass: s
            .object({
              names: s
                .list(s.string({ minLength: 1, maxLength: 256 }), { maxItems: 100 })
                .atomic()
                .optional(),
            })
            .optional(),
          machinePoolClass: s
            .object({
              names: s
                .list(s.string({ minLength: 1, maxLength: 256 }), { maxItems: 100 })
                .atomic()
                .optional(),
            })
            .optional(),
        },
        { minProperties: 1 },
      )
      .doc('Which parts of the class the template belongs to.'),
  })
  .doc('Which templates a patch changes.')
export type PatchSelector = Infer<typeof patchSelector>

const jsonPatch = s
  .object({
    op: s.enum('add', 'replace', 'remove').doc('add, replace or remove.'),
    path: s.string({ minLength: 1, maxLength: 512 }).doc('Where, as a JSON pointer below /spec.'),
    value: s.any().optional().doc('A fixed value.'),
    valueFrom: s
      .object({
        template: s.string({ minLength: 1, maxLength: 10240 }).optional(),
        variable: s.string({ minLength: 1, maxLength: 256 }).optional(),
      })
      .optional()
      .doc('A value from a variable, or from a Go template over the variables.'),
  })
  .doc('One operation on a template.')
export type JSONPatch = Infer<typeof jsonPatch>

const patchDefinition = s
  .object({
    jsonPatches: s.list(jsonPatch, { minItems: 1, maxItems: 100 }).atomic().doc('What changes.'),
    selector: patchSelector,
  })
  .doc('Operations on the templates that the selector matches.')
export type PatchDefinition = Infer<typeof patchDefinition>

const externalPatch = s
  .object({
    discoverVariablesExtension: s
      .string({ minLength: 1, maxLength: 512 })
      .optional()
      .doc('Name of the handler that tells its variables.'),
    generatePatchesExtension: s
      .string({ minLength: 1, maxLength: 512 })
      .optional()
      .doc('Name of the handler that computes the patch.'),
    settings: s.map(s.string()).optional().doc('Given to the extension with every call.'),
    validateTopologyExtension: s
      .string({ minLength: 1, maxLength: 512 })
      .optional()
      .doc('Name of the handler that checks the topology after all patches.'),
  })
  .doc('A patch computed by a Runtime Extension.')
export type ExternalPatchDefinition = Infer<typeof externalPatch>

const classPatch = s
  .object({
    definitions: s.list(patchDefinition, { maxItems: 100 }).atomic().optional().doc('Inline changes. Either these or external.'),
    description: s.string({ minLength: 1, maxLength: 1024 }).optional(),
    enabledIf: s
      .string({ minLength: 1, maxLength: 256 })
      .optional()
      .doc('Go template over the variables: the patch applies when it gives true. Always when absent.'),
    external: externalPatch.optional(),
    name: s.string({ minLength: 1, maxLength: 256 }).doc('Unique within the class.'),
  })
  .doc('One patch: inline or external.')
export type ClusterClassPatch = Infer<typeof classPatch>

const classVariable = s
  .object({
    deprecatedV1Beta1Metadata: objectMeta.optional(),
    name: s.string({ minLength: 1, maxLength: 256 }).doc('Name, without dots; builtin is taken.'),
    required: s.boolean().doc('Whether Clusters must set it.'),
    schema: variableSchema,
  })
  .doc('A variable that Clusters of this class set.')
export type ClusterClassVariable = Infer<typeof classVariable>

const controlPlaneClass = s
  .object({
    deletion: nodeDeletion.optional(),
    healthCheck: s
      .object(
        {
          checks: healthChecks.optional(),
          remediation: s
            .object(
              {
                templateRef: templateReference.optional(),
                triggerIf: remediationTrigger.optional(),
              },
              { minProperties: 1 },
            )
            .optional()
            .doc('How and when unhealthy Machines are replaced.'),
        },
        { minProperties: 1 },
      )
      .optional()
      .doc('When Machines count as unhealthy, and what happens then.'),
    machineInfrastructure: s
      .object({
        templateRef: templateReference,
      })
      .optional()
      .doc('Infrastructure of control plane Machines, for control planes that run on Machines.'),
    metadata: objectMeta.optional(),
    naming: naming.optional(),
    readinessGates: conditionGates.optional(),
    taints: machineTaints.optional(),
    templateRef: templateReference,
  })
  .doc('The control plane of Clusters of this class.')
export type ControlPlaneClass = Infer<typeof controlPlaneClass>

const infrastructureClass = s
  .object({
    naming: naming.optional(),
    templateRef: templateReference,
  })
  .doc('The infrastructure of Clusters of this class.')
export type InfrastructureClass = Infer<typeof infrastructureClass>

const machineDeploymentClass = s
  .object({
    bootstrap: s.object({
      templateRef: templateReference,
    }),
    class: s.string({ minLength: 1, maxLength: 256 }).doc('Name of the class, unique within the ClusterClass.'),
    deletion: machineDeploymentDeletion.optional(),
    failureDomain: s
      .string({ minLength: 1, maxLength: 256 })
      .optional()
      .doc('Where Machines are placed, among the failure domains of the Cluster.'),
    healthCheck: s
      .object(
        {
          checks: healthChecks.optional(),
          remediation: s
            .object(
              {
                maxInFlight: s
                  .intOrString()
                  .optional()
                  .doc(
                    'How many Machines may be replaced at once for being unhealthy: a number, or a percentage of the replicas.',
                  ),
                templateRef: templateReference.optional(),
                triggerIf: remediationTrigger.optional(),
              },
              { minProperties: 1 },
            )
            .optional()
            .doc('How and when unhealthy Machines are replaced.'),
        },
        { minProperties: 1 },
      )
      .optional()
      .doc('When Machines count as unhealthy, and what happens then.'),
    infrastructure: s.object({
      templateRef: templateReference,
    }),
    metadata: objectMeta.optional(),
    minReadySeconds: s
      .int32({ minimum: 0 })
      .optional()
      .doc('How long a Machine must be Ready before it counts as Available; 0 when absent.'),
    naming: naming.optional(),
    readinessGates: conditionGates.optional(),
    rollout: s
      .object(
        {
          strategy: rolloutStrategy.optional(),
        },
        { minProperties: 1 },
      )
      .optional()
      .doc('When and how changes reach Machines.'),
    taints: machineTaints.optional(),
  })
  .doc('A kind of MachineDeployment that Clusters of this class can have.')
export type MachineDeploymentClass = Infer<typeof machineDeploymentClass>

const machinePoolClass = s
  .object({
    bootstrap: s.object({
      templateRef: templateReference,
    }),
    class: s.string({ minLength: 1, maxLength: 256 }).doc('Name of the class, unique within the ClusterClass.'),
    deletion: nodeDeletion.optional(),
    failureDomains: s
      .list(s.string({ minLength: 1, maxLength: 256 }), { maxItems: 100 })
      .atomic()
      .optional()
      .doc('Where Machines are placed, among the failure domains of the Cluster.'),
    infrastructure: s.object({
      templateRef: templateReference,
    }),
    metadata: objectMeta.optional(),
    minReadySeconds: s
      .int32({ minimum: 0 })
      .optional()
      .doc('How long a Machine must be Ready before it counts as Available; 0 when absent.'),
    naming: naming.optional(),
    taints: machineTaints.optional(),
  })
  .doc('A kind of MachinePool that Clusters of this class can have.')
export type MachinePoolClass = Infer<typeof machinePoolClass>

const statusVariable = s
  .object({
    definitions: s
      .list(
        s.object({
          deprecatedV1Beta1Metadata: objectMeta.optional(),
          from: s.string({ minLength: 1, maxLength: 256 }).doc('inline, or the name of the patch whose extension defines it.'),
          required: s.boolean(),
          schema: variableSchema,
        }),
        { minItems: 1, maxItems: 100 },
      )
      .atomic(),
    definitionsConflict: s.boolean().optional().doc('True when definitions of the variable differ.'),
    name: s.string({ minLength: 1, maxLength: 256 }),
  })
  .doc('A variable with each of its definitions, inline and from extensions.')
export type ClusterClassStatusVariable = Infer<typeof statusVariable>

const clusterClassSpec = s.object({
  availabilityGates: conditionGates.optional(),
  controlPlane: controlPlaneClass,
  infrastructure: infrastructureClass,
  kubernetesVersions: s
    .list(s.string({ minLength: 1, maxLength: 256 }), { minItems: 1, maxItems: 100 })
    .atomic()
    .optional()
    .doc('Versions that Clusters of the class may have, ascending. They are also the steps of upgrades.'),
  patches: s.list(classPatch, { minItems: 1, maxItems: 1000 }).atomic().optional().doc('Changes of the templates, in order.'),
  upgrade: s
    .object(
      {
        external: s
          .object(
            {
              generateUpgradePlanExtension: s
                .string({ minLength: 1, maxLength: 512 })
                .optional()
                .doc('Name of the handler that tells the steps of an upgrade.'),
            },
            { minProperties: 1 },
          )
          .optional(),
      },
      { minProperties: 1 },
    )
    .optional()
    .doc('How Clusters of the class are upgraded.'),
  variables: s
    .list(classVariable, { minItems: 1, maxItems: 1000 })
    .atomic()
    .optional()
    .doc('Variables that Clusters set and patches read.'),
  workers: s
    .object(
      {
        machineDeployments: s
          .list(machineDeploymentClass, { minItems: 1, maxItems: 100 })
          .listMap('class')
          .optional()
          .doc('Groups of Machines that MachineDeployments manage.'),
        machinePools: s
          .list(machinePoolClass, { minItems: 1, maxItems: 100 })
          .listMap('class')
          .optional()
          .doc('Groups of Machines that MachinePools manage.'),
      },
      { minProperties: 1 },
    )
    .optional()
    .doc('The worker Machines that Clusters of this class can have, in groups.'),
})
export type ClusterClassSpec = Infer<typeof clusterClassSpec>

const clusterClassStatus = s.object(
  {
    conditions: s.conditions(),
    deprecated: s
      .object({
        v1beta1: s
          .object({
            conditions: legacyConditions.optional(),
          })
          .optional(),
      })
      .optional()
      .doc('Status of v1beta1, kept while v1beta1 is served.'),
    observedGeneration: s.int64({ minimum: 1 }).optional().doc('The metadata.generation that was reconciled last.'),
    variables: s
      .list(statusVariable, { maxItems: 1000 })
      .atomic()
      .optional()
      .doc('All variables, by name, from the class itself and from extensions.'),
  },
  { minProperties: 1 },
)
export type ClusterClassStatus = Infer<typeof clusterClassStatus>

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
  doc: 'A class of Clusters: the templates they are made from, the variables they set, and how these change the templates.',
  spec: clusterClassSpec,
  status: clusterClassStatus,

  columns: [
    column('Paused', '.status.conditions[?(@.type=="Paused")].status', { priority: 10, description: 'Reconciliation paused' }),
    column('Variables Ready', '.status.conditions[?(@.type=="VariablesReady")].status', {
      description: 'Variables are discovered',
    }),
    column('Age', '.metadata.creationTimestamp', { type: 'date', description: 'Time since creation' }),
  ],
  labels: contractLabels,
  validate: clusterClassErrors,
})
export type ClusterClass = ObjectOf<typeof ClusterClass>
