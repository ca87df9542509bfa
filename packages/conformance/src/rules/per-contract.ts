/**
 * Rules that every contract has in its own form: the kind and its template, initialization, conditions, failures, pausing, owners (except
 * for control planes), deletion and restarts.
 */
import {
  BootstrapConfigContract,
  ContractVersions,
  ControlPlaneContract,
  type ContractField,
  failureFields,
  InfraClusterContract,
  InfraMachineContract,
  InfraMachinePoolContract,
} from '@capstan/api/contract'
import { type ContractName, ContractNames, type ProviderKind } from '../manifests.ts'
import type { Problem, Rule } from '../rule.ts'
import { fieldAt, hasField } from '../schema-fields.ts'
import { conditions, initialization, ownerFirst, pausing, released, survivesRestart } from '../live/checks/all-resources.ts'
import { ofEachClaim, ofEachKind, optionalField, requiredField, schemaProblem } from './checks.ts'

const bothVersions = ContractVersions

/** Parts of these rules that differ between contracts. */
interface Differences {
  /** Prefix of the ids: `infra-cluster`. */
  readonly id: string
  readonly initialized: ContractField<boolean>
  /** Field that core accepts instead of `initialized`. */
  readonly also?: ContractField<boolean>
  /** Effect while the object is not initialized. */
  readonly until: string
  /** Level of the rule that a kind has a template; SHOULD if only ClusterClasses need the template. */
  readonly templateLevel: 'MUST' | 'SHOULD'
  /** The section on templates, if its heading differs from the usual pattern. */
  readonly templateSection?: string
  /** The condition that core copies. */
  readonly condition: 'Ready' | 'Available'
}

const differences: Readonly<Record<ContractName, Differences>> = {
  InfraCluster: {
    id: 'infra-cluster',
    initialized: InfraClusterContract.provisioned,
    until: 'the endpoint and failure domains are not copied to the Cluster, and control plane providers create no Machines',
    templateLevel: 'SHOULD',
    condition: 'Ready',
  },
  InfraMachine: {
    id: 'infra-machine',
    initialized: InfraMachineContract.provisioned,
    until: 'the Machine stays in phase Provisioning, without provider ID and Node',
    templateLevel: 'MUST',
    condition: 'Ready',
  },
  InfraMachinePool: {
    id: 'infra-machine-pool',
    initialized: InfraMachinePoolContract.provisioned,
    also: InfraMachinePoolContract.ready,
    until: 'the MachinePool gets no provider IDs and no Nodes',
    templateLevel: 'SHOULD',
    templateSection: 'InfraMachinePoolTemplate, InfraMachineTemplatePoolList resource definition',
    condition: 'Ready',
  },
  BootstrapConfig: {
    id: 'bootstrap-config',
    initialized: BootstrapConfigContract.dataSecretCreated,
    until: 'the Machine gets no bootstrap data secret, and its infrastructure waits',
    templateLevel: 'MUST',
    condition: 'Ready',
  },
  ControlPlane: {
    id: 'control-plane',
    initialized: ControlPlaneContract.initialized,
    until: 'the Cluster waits for its control plane, and bootstrap providers create no data for workers',
    templateLevel: 'SHOULD',
    condition: 'Available',
  },
}

/** Whether the kind needs a template. Machines of a pool need none, because the provider creates them. */
const needsTemplate = ({ crd }: ProviderKind): boolean => !crd.spec.names.kind.endsWith('MachinePoolMachine')

function missingTemplate({ manifest, crd }: ProviderKind, kinds: readonly ProviderKind[]): Problem[] {
  const kind = `${crd.spec.names.kind}Template`
  if (
    kinds.some(
      (template) => template.isTemplate && template.crd.spec.names.kind === kind && template.crd.spec.group === crd.spec.group,
    )
  )
    return []
  return [
    {
      manifest,
      path: 'spec.names.kind',
      message: `There is no CustomResourceDefinition of kind ${kind} in group ${crd.spec.group}`,
      edit: `Add ${kind} with spec.template.metadata and spec.template.spec.`,
    },
  ]
}

/**
 * Sections that describe reconciliation. The page of InfraMachinePool has no such section, so its rules refer to the section with the
 * definition of the resource.
 */
const workflows: Readonly<Record<ContractName, { readonly normalWorkflow: string; readonly deletedWorkflow: string }>> = {
  InfraCluster: { normalWorkflow: 'Normal resource', deletedWorkflow: 'Deleted resource' },
  InfraMachine: { normalWorkflow: 'Normal resource', deletedWorkflow: 'Deleted resource' },
  InfraMachinePool: {
    normalWorkflow: 'InfraMachinePool, InfraMachinePoolList resource definition',
    deletedWorkflow: 'InfraMachinePool, InfraMachinePoolList resource definition',
  },
  BootstrapConfig: { normalWorkflow: 'Behavior', deletedWorkflow: 'Typical BootstrapConfig reconciliation workflow' },
  ControlPlane: {
    normalWorkflow: 'Typical ControlPlane reconciliation workflow',
    deletedWorkflow: 'Typical ControlPlane reconciliation workflow',
  },
}

/** Rules about the fields of the kind and its templates. */
function fieldRules(contract: ContractName): Rule[] {
  const { id, initialized, also, until, templateLevel, templateSection, condition } = differences[contract]
  const pages = [contract] as const
  const contracts = pages
  const isPool = contract === 'InfraMachinePool'
  const v1beta2Paths = [initialized, ...(also ? [also] : [])].map(({ paths }) => paths.v1beta2)
  const conditionsEffect = isPool
    ? 'Clients read status.conditions as metav1.Condition. Core copies only Ready, and only to status.deprecated.v1beta1 of the MachinePool.'
    : `Core reads status.conditions as metav1.Condition. Conditions in the format of contract v1beta1 may lack a reason. Core then reports the reason ${condition} if the condition is True, and NoReasonReported otherwise.`
  const templateHeading = templateSection ?? `${contract}Template, ${contract}TemplateList resource definition`
  return [
    {
      id: `${id}.resource`,
      level: 'MUST',
      pages,
      section: `${contract}, ${contract}List resource definition`,
      versions: bothVersions,
      applies: 'always',
      sentence: `The kind of the ${contract} has a spec and a status, both objects.`,
      why: 'Core reads fields below both, and fails when the parent of a field is not an object.',
      check: ofEachClaim('`spec` and `status` of the schema.', { contracts }, (claim) => [
        ...optionalField(claim, 'spec', 'object'),
        ...requiredField(claim, 'status', 'object'),
      ]),
    },
    {
      id: `${id}.initialization`,
      level: 'MUST',
      pages,
      section: `${contract}: initialization completed`,
      versions: bothVersions,
      applies: 'always',
      sentence: `A boolean reports that initialization is completed: ${v1beta2Paths.join(' or ')}, in contract v1beta1 ${initialized.paths.v1beta1}.`,
      why: `The API server prunes a field that the schema does not have, so core never sees it: ${until}.`,
      cases: ['kubernetes-sigs/cluster-api-provider-kubevirt#391'],
      check: ofEachClaim(
        `${v1beta2Paths.map((path) => `\`${path}\``).join(' or ')}, in contract v1beta1 \`${initialized.paths.v1beta1}\`.`,
        { contracts },
        (claim) => {
          const path = initialized.paths[claim.contractVersion]
          const alternative = also?.paths[claim.contractVersion]
          return alternative !== undefined && !hasField(claim.schema, path)
            ? requiredField(claim, alternative, 'boolean')
            : requiredField(claim, path, 'boolean')
        },
      ),
      live: [initialization(contract)],
    },
    {
      id: `${id}.conditions`,
      level: 'SHOULD',
      pages,
      section: `${contract}: conditions`,
      versions: ['v1beta2'],
      applies: 'kinds with status.conditions that claim contract v1beta2',
      sentence: `Conditions have the shape of metav1.Condition, without severity. Core copies the condition ${condition}.`,
      why: conditionsEffect,
      cases: ['kubernetes-sigs/cluster-api-provider-openstack#2895'],
      check: ofEachClaim(
        `\`status.conditions[*]\`, unless the schema has \`status.v1beta2.conditions\`${isPool ? '' : ', which core prefers'}.`,
        {
          contracts,
          versions: ['v1beta2'],
          applies: ({ schema }) => hasField(schema, 'status.conditions') && !hasField(schema, 'status.v1beta2.conditions'),
        },
        (claim) => {
          const conditions = fieldAt(claim.schema, 'status.conditions')
          if (conditions === 'any' || conditions === undefined) return []
          if (conditions.items?.properties?.severity === undefined) return optionalField(claim, 'status.conditions', 'array')
          return [
            schemaProblem(
              claim,
              'status.conditions',
              'conditions have a field severity, which metav1.Condition does not have',
              'Use []metav1.Condition in status.conditions, and keep the old conditions below status.deprecated.',
            ),
          ]
        },
      ),
      live: [conditions(contract)],
    },
    {
      id: `${id}.terminal-failures`,
      level: 'SHOULD',
      pages,
      section: `${contract}: terminal failures`,
      versions: bothVersions,
      applies: 'kinds with status.failureReason or status.failureMessage',
      sentence:
        'status.failureReason and status.failureMessage are strings where a provider has them; they are deprecated in contract v1beta2.',
      why: 'Core copies both to status.deprecated.v1beta1 of the owner, and fails when they are not strings. They do not start remediation.',
      cases: ['kubernetes-sigs/cluster-api#14234'],
      check: ofEachClaim('The types of `status.failureReason` and `status.failureMessage`.', { contracts }, (claim) =>
        Object.values(failureFields).flatMap(({ paths }) => optionalField(claim, paths[claim.contractVersion], 'string')),
      ),
    },
    {
      id: `${id}.template`,
      level: templateLevel,
      pages,
      section: templateHeading,
      versions: bothVersions,
      applies: templateLevel === 'MUST' ? 'always' : 'providers that support ClusterClasses',
      sentence: 'There is a kind of templates, named like the kind with Template appended, in the same group.',
      why: 'Core makes objects from templates, and derives the kind of an object by removing Template. Without a template the kind cannot be used in a ClusterClass.',
      cases: ['SovereignCloudStack/cluster-stacks#25'],
      check: ofEachKind('CustomResourceDefinitions of `<Kind>Template`.', { contracts }, (kind, kinds) =>
        needsTemplate(kind) ? missingTemplate(kind, kinds) : [],
      ),
    },
    {
      id: `${id}.template-fields`,
      level: 'MUST',
      pages,
      section: templateHeading,
      versions: bothVersions,
      applies: 'templates',
      sentence: 'Templates have spec.template.spec and spec.template.metadata.',
      why: 'Core copies spec.template to new objects, and writes labels and annotations of a topology to spec.template.metadata: the API server prunes them where the schema has no such field.',
      check: ofEachClaim('`spec.template.spec` and `spec.template.metadata`.', { contracts, templates: true }, (claim) => [
        ...requiredField(claim, 'spec.template.spec', 'object'),
        ...requiredField(claim, 'spec.template.metadata', 'object'),
        ...['labels', 'annotations'].flatMap((name) => metadataField(claim, `spec.template.metadata.${name}`)),
      ]),
    },
  ]
}

/** Rules about the behaviour of the controller. */
function behaviourRules(contract: ContractName): Rule[] {
  const { id } = differences[contract]
  const { normalWorkflow, deletedWorkflow } = workflows[contract]
  const pages = [contract] as const
  return [
    {
      id: `${id}.pausing`,
      level: 'SHOULD',
      pages,
      section: `${contract}: pausing`,
      versions: bothVersions,
      applies: 'always',
      sentence:
        'Controllers change nothing but the condition Paused while Cluster.spec.paused is true or the object has the annotation cluster.x-k8s.io/paused.',
      why: 'clusterctl move pauses a Cluster and copies its objects. A controller that continues deletes or duplicates infrastructure.',
      check: { none: 'behaviour of the controller' },
      live: [pausing(contract)],
    },
    ...(contract === 'ControlPlane'
      ? []
      : [
          {
            id: `${id}.owner-first`,
            level: 'SHOULD',
            pages,
            section: normalWorkflow,
            versions: bothVersions,
            applies: 'always',
            sentence: 'Controllers provision nothing before core has set the owner of the object.',
            why: 'The infrastructure would belong to no known Cluster, and would not be deleted with its Cluster.',
            check: { none: 'behaviour of the controller' },
            live: [ownerFirst(contract)],
          } satisfies Rule,
        ]),
    {
      id: `${id}.deletion`,
      level: 'MUST',
      pages,
      section: deletedWorkflow,
      versions: bothVersions,
      applies: 'always',
      sentence:
        'Controllers remove their finalizers from an object that is deleted in any phase of its life, also when it was never provisioned.',
      why: 'Core deletes a Cluster in order and waits for each object. An object that keeps its finalizer blocks the deletion of the Cluster.',
      check: { none: 'behaviour of the controller' },
      live: [released(contract, 'deletion'), ...(contract === 'ControlPlane' ? [] : [released(contract, 'orphans')])],
    },
    {
      id: `${id}.restart`,
      level: 'SHOULD',
      pages,
      section: normalWorkflow,
      versions: bothVersions,
      applies: 'always',
      sentence: 'A restart of the controllers, in any phase, neither changes an object nor stops its progress.',
      why: 'Controllers are restarted at any time. State that they keep outside of the API is lost.',
      check: { none: 'behaviour of the controller' },
      live: [survivesRestart(contract)],
    },
  ]
}

/**
 * Returns the problem of a field of `spec.template.metadata` that the schema does not declare as an object. The API server prunes labels and
 * annotations if the schema of the metadata is only `type: object`.
 */
function metadataField(claim: Parameters<typeof requiredField>[0], path: string): Problem[] {
  const metadata = fieldAt(claim.schema, 'spec.template.metadata')
  return metadata === undefined || metadata === 'any' ? [] : requiredField(claim, path, 'object')
}

export const perContract: Readonly<Record<ContractName, readonly Rule[]>> = Object.fromEntries(
  ContractNames.map((contract) => [contract, [...fieldRules(contract), ...behaviourRules(contract)]]),
) as Record<ContractName, Rule[]>
