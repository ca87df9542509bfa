/** ClusterClass: a template for Clusters. Upstream: api/core/v1beta2/clusterclass_types.go, v1.14. */
import type { Infer, ObjectOf } from '@capstan/kube'
import { column, conditionTypes, defineKind, s } from '@capstan/kube'
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
    apiVersion: s.string({ minLength: 1, maxLength: 317, pattern: groupVersion }),
    kind: s.string({ minLength: 1, maxLength: 63, pattern: kindName }),
    matchResources: s.object(
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
    ),
  })
  .doc('Which templates a patch changes.')
export type PatchSelector = Infer<typeof patchSelector>

const jsonPatch = s
  .object({
    op: s.enum('add', 'replace', 'remove'),
    path: s.string({ minLength: 1, maxLength: 512 }),
    value: s.any().optional(),
    valueFrom: s
      .object({
        template: s.string({ minLength: 1, maxLength: 10240 }).optional(),
        variable: s.string({ minLength: 1, maxLength: 256 }).optional(),
      })
      .optional(),
  })
  .doc('One operation on a template.')
export type JSONPatch = Infer<typeof jsonPatch>

const patchDefinition = s
  .object({
    jsonPatches: s.list(jsonPatch, { minItems: 1, maxItems: 100 }).atomic(),
    selector: patchSelector,
  })
  .doc('Operations on the templates that the selector matches.')
export type PatchDefinition = Infer<typeof patchDefinition>

const externalPatch = s
  .object({
    discoverVariablesExtension: s.string({ minLength: 1, maxLength: 512 }).optional(),
    generatePatchesExtension: s.string({ minLength: 1, maxLength: 512 }).optional(),
    settings: s.map(s.string()).optional(),
    validateTopologyExtension: s.string({ minLength: 1, maxLength: 512 }).optional(),
  })
  .doc('A patch computed by a Runtime Extension.')
export type ExternalPatchDefinition = Infer<typeof externalPatch>

const classPatch = s
  .object({
    definitions: s.list(patchDefinition, { maxItems: 100 }).atomic().optional(),
    description: s.string({ minLength: 1, maxLength: 1024 }).optional(),
    enabledIf: s.string({ minLength: 1, maxLength: 256 }).optional(),
    external: externalPatch.optional(),
    name: s.string({ minLength: 1, maxLength: 256 }),
  })
  .doc('One patch: inline or external.')
export type ClusterClassPatch = Infer<typeof classPatch>

const classVariable = s
  .object({
    deprecatedV1Beta1Metadata: objectMeta.optional(),
    name: s.string({ minLength: 1, maxLength: 256 }),
    required: s.boolean(),
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
            .optional(),
        },
        { minProperties: 1 },
      )
      .optional(),
    machineInfrastructure: s
      .object({
        templateRef: templateReference,
      })
      .optional(),
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
    class: s.string({ minLength: 1, maxLength: 256 }),
    deletion: machineDeploymentDeletion.optional(),
    failureDomain: s.string({ minLength: 1, maxLength: 256 }).optional(),
    healthCheck: s
      .object(
        {
          checks: healthChecks.optional(),
          remediation: s
            .object(
              {
                maxInFlight: s.intOrString().optional(),
                templateRef: templateReference.optional(),
                triggerIf: remediationTrigger.optional(),
              },
              { minProperties: 1 },
            )
            .optional(),
        },
        { minProperties: 1 },
      )
      .optional(),
    infrastructure: s.object({
      templateRef: templateReference,
    }),
    metadata: objectMeta.optional(),
    minReadySeconds: s.int32({ minimum: 0 }).optional(),
    naming: naming.optional(),
    readinessGates: conditionGates.optional(),
    rollout: s
      .object(
        {
          strategy: rolloutStrategy.optional(),
        },
        { minProperties: 1 },
      )
      .optional(),
    taints: machineTaints.optional(),
  })
  .doc('A kind of MachineDeployment that Clusters of this class can have.')
export type MachineDeploymentClass = Infer<typeof machineDeploymentClass>

const machinePoolClass = s
  .object({
    bootstrap: s.object({
      templateRef: templateReference,
    }),
    class: s.string({ minLength: 1, maxLength: 256 }),
    deletion: nodeDeletion.optional(),
    failureDomains: s
      .list(s.string({ minLength: 1, maxLength: 256 }), { maxItems: 100 })
      .atomic()
      .optional(),
    infrastructure: s.object({
      templateRef: templateReference,
    }),
    metadata: objectMeta.optional(),
    minReadySeconds: s.int32({ minimum: 0 }).optional(),
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
          from: s.string({ minLength: 1, maxLength: 256 }),
          required: s.boolean(),
          schema: variableSchema,
        }),
        { minItems: 1, maxItems: 100 },
      )
      .atomic(),
    definitionsConflict: s.boolean().optional(),
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
    .optional(),
  patches: s.list(classPatch, { minItems: 1, maxItems: 1000 }).atomic().optional(),
  upgrade: s
    .object(
      {
        external: s
          .object(
            {
              generateUpgradePlanExtension: s.string({ minLength: 1, maxLength: 512 }).optional(),
            },
            { minProperties: 1 },
          )
          .optional(),
      },
      { minProperties: 1 },
    )
    .optional(),
  variables: s.list(classVariable, { minItems: 1, maxItems: 1000 }).atomic().optional(),
  workers: s
    .object(
      {
        machineDeployments: s.list(machineDeploymentClass, { minItems: 1, maxItems: 100 }).listMap('class').optional(),
        machinePools: s.list(machinePoolClass, { minItems: 1, maxItems: 100 }).listMap('class').optional(),
      },
      { minProperties: 1 },
    )
    .optional(),
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
      .optional(),
    observedGeneration: s.int64({ minimum: 1 }).optional(),
    variables: s.list(statusVariable, { maxItems: 1000 }).atomic().optional(),
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
    column('Paused', '.status.conditions[?(@.type=="Paused")].status', { priority: 10 }),
    column('Variables Ready', '.status.conditions[?(@.type=="VariablesReady")].status'),
    column('Age', '.metadata.creationTimestamp', { type: 'date' }),
  ],
  labels: contractLabels,
})
export type ClusterClass = ObjectOf<typeof ClusterClass>
