/**
 * Rules that all contracts of upstream share: names, scope, versions and labels of CustomResourceDefinitions, and permissions of core and
 * of providers.
 */
import { ContractVersions, pluralOf } from '@capstan/api/contract'
import { compareApiVersions, type CustomResourceVersion, equal, type JSONSchema } from '@capstan/kube'
import {
  claimedVersions,
  claimsOf,
  ContractNames,
  labelOf,
  list,
  type Manifest,
  metadataOf,
  type ProviderKind,
  record,
} from '../manifests.ts'
import { typeAndObjectMeta } from '../live/checks/all-resources.ts'
import type { Problem, Rule } from '../rule.ts'
import { hasField } from '../schema-fields.ts'
import { ofEachKind } from './checks.ts'
import { hasMachines } from './control-plane.ts'

const bothVersions = ContractVersions

const namesOf = ({ metadata, spec }: ProviderKind['crd']) => ({ name: metadata.name, ...spec.names })

/** Returns, by path, whether a field has a default. `schema` is the schema of `spec.template.spec` in one version of a template. */
function defaultsOf(schema: JSONSchema | undefined, path = '', hasDefaults = new Map<string, boolean>()): Map<string, boolean> {
  for (const [name, field] of Object.entries(schema?.properties ?? {})) {
    const fieldPath = path === '' ? name : `${path}.${name}`
    hasDefaults.set(fieldPath, field.default !== undefined)
    defaultsOf(field, fieldPath, hasDefaults)
    if (field.items) defaultsOf(field.items, `${fieldPath}[]`, hasDefaults)
  }
  return hasDefaults
}

const templateSpec = ({ schema }: CustomResourceVersion): JSONSchema | undefined =>
  schema?.openAPIV3Schema?.properties?.spec?.properties?.template?.properties?.spec

/** Returns a schema without descriptions. */
function shapeOf(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(shapeOf)
  if (typeof schema !== 'object' || schema === null) return schema
  const fields = Object.entries(schema).filter(([name, value]) => name !== 'description' || typeof value !== 'string')
  return Object.fromEntries(fields.map(([name, value]) => [name, shapeOf(value)]))
}

const readVerbs = ['get', 'list', 'patch', 'update', 'watch']
const allVerbs = ['create', 'delete', ...readVerbs]

/**
 * Returns the verbs that core needs for a kind. Of templates, core creates and deletes only those of machines and bootstrap configs:
 * it copies them for a topology.
 */
const verbsFor = ({ contract, isTemplate }: ProviderKind): readonly string[] =>
  isTemplate && contract !== 'InfraMachine' && contract !== 'BootstrapConfig' ? readVerbs : allVerbs

const covers = (granted: unknown, required: string): boolean => list(granted).includes(required) || list(granted).includes('*')

/** Whether a rule of the roles allows the verb for the resource. `resources`: the possible names of the resource in rules. */
const allows = (roles: readonly Manifest[], group: string, resources: readonly string[], verb: string): boolean =>
  roles
    .flatMap(({ object }) => list(object.rules).map(record))
    .some(
      (rule) =>
        covers(rule.apiGroups, group) &&
        resources.some((resource) => covers(rule.resources, resource)) &&
        covers(rule.verbs, verb),
    )

/** Returns the verbs that core needs for a kind and that the roles do not allow. */
const missingVerbs = (kind: ProviderKind, roles: readonly Manifest[]): string[] =>
  verbsFor(kind).filter((verb) => !allows(roles, kind.crd.spec.group, [kind.crd.spec.names.plural], verb))

/** Whether Machines, or the infrastructure machines of a pool, have an owner of this kind. */
const ownsMachines = (kind: ProviderKind): boolean =>
  !kind.isTemplate &&
  claimsOf(kind).some(
    (claim) =>
      (claim.contract === 'ControlPlane' && hasMachines(claim)) ||
      (claim.contract === 'InfraMachinePool' && hasField(claim.schema, 'status.infrastructureMachineKind')),
  )

/** Returns a problem for each version in a contract label that is not served; `isChosen` marks the version that core chooses. */
function labelProblems(kind: ProviderKind): (Problem & { readonly isChosen: boolean })[] {
  const served = kind.crd.spec.versions.filter((version) => version.served).map(({ name }) => name)
  const newest = ContractVersions.find((contract) => claimedVersions(kind, contract).length > 0)
  const chosenVersion = newest && claimedVersions(kind, newest).sort(compareApiVersions)[0]
  return ContractVersions.flatMap((contract) =>
    claimedVersions(kind, contract).flatMap((version) => {
      if (served.includes(version)) return []
      const exists = kind.crd.spec.versions.some(({ name }) => name === version)
      return [
        {
          isChosen: contract === newest && version === chosenVersion,
          manifest: kind.manifest,
          path: `metadata.labels[${labelOf(contract)}]`,
          message: `Version ${version} ${exists ? 'is not served' : 'does not exist'}, served versions are ${served.join(', ') || 'none'}`,
          edit: `Remove ${version} from the label, or serve it.`,
        },
      ]
    }),
  )
}

const upstreamGroups = /^(infrastructure|bootstrap|controlplane)\.cluster\.x-k8s\.io$/

export const allResources: readonly Rule[] = [
  {
    id: 'namespaced-scope',
    level: 'MUST',
    pages: ContractNames,
    section: 'All resources: scope',
    versions: bothVersions,
    applies: 'every kind of a contract',
    sentence: 'Kinds of a contract are namespaced.',
    why: 'Core reads the object in the namespace of the object that refers to it. References have no namespace, so a cluster-scoped object is not found.',
    check: ofEachKind('`spec.scope`.', { templates: 'both' }, ({ manifest, crd }) =>
      crd.spec.scope === 'Namespaced'
        ? []
        : [
            {
              manifest,
              path: 'spec.scope',
              message: `Scope is ${crd.spec.scope}, expected Namespaced`,
              edit: 'Set spec.scope to Namespaced.',
            },
          ],
    ),
  },
  {
    id: 'type-and-object-meta',
    level: 'MUST',
    pages: ContractNames,
    section: 'All resources: `TypeMeta` and `ObjectMeta` field',
    versions: bothVersions,
    applies: 'every kind of a contract',
    sentence: 'Objects have apiVersion, kind and metadata, as every Kubernetes object has.',
    why: 'Core cannot set owner references, labels and annotations, which are in metadata.',
    check: { none: 'the API server adds these fields to every kind that a CustomResourceDefinition declares' },
    live: [typeAndObjectMeta],
  },
  {
    id: 'crd-name',
    level: 'MUST',
    pages: ContractNames,
    section: 'All resources: version',
    versions: bothVersions,
    applies: 'every kind of a contract',
    sentence:
      'The name of the CustomResourceDefinition is the plural that Cluster API computes from the kind, a dot, and the group.',
    why: 'Core computes the name from kind and group, without discovery, and reads the contract labels of the CustomResourceDefinition with this name. If the CustomResourceDefinition has another name, every reconcile that follows a reference to the kind fails.',
    check: ofEachKind('`metadata.name`.', { templates: 'both' }, ({ manifest, crd }) => {
      const { name, kind } = namesOf(crd)
      const expected = `${pluralOf(kind)}.${crd.spec.group}`
      if (name === expected) return []
      const message = `Name is ${name}, expected ${expected} for kind ${kind}`
      return [
        {
          manifest,
          path: 'metadata.name',
          message,
          edit: `Set spec.names.plural to ${pluralOf(kind)} and metadata.name to ${expected}.`,
        },
      ]
    }),
  },
  {
    id: 'list-kind',
    level: 'MUST',
    pages: ContractNames,
    section: 'All resources: scope',
    versions: bothVersions,
    applies: 'every kind of a contract',
    sentence: 'The kind of lists is the kind with List appended.',
    why: "Clients that know only the kind, such as core's controller of MachineSets, request lists of the kind <Kind>List.",
    check: ofEachKind('`spec.names.listKind`; the API server sets it when it is absent.', { templates: 'both' }, (kind) => {
      const { kind: name, listKind } = namesOf(kind.crd)
      if (listKind === undefined || listKind === `${name}List`) return []
      const message = `List kind is ${listKind}, expected ${name}List`
      return [
        {
          manifest: kind.manifest,
          path: 'spec.names.listKind',
          message,
          edit: `Set spec.names.listKind to ${name}List.`,
        },
      ]
    }),
  },
  {
    id: 'contract-label',
    level: 'MUST',
    pages: ContractNames,
    section: 'All resources: version',
    versions: bothVersions,
    applies: 'every kind of a contract, templates included',
    sentence:
      'The CustomResourceDefinition has a label cluster.x-k8s.io/<contract version> that lists the versions of the kind that implement the contract.',
    why: 'Core chooses the version of a referenced object by these labels; only references of a ClusterClass name the version of a template. Without a label, reconciles fail with "cannot find any versions matching contract versions".',
    cases: ['kubernetes-sigs/cluster-api#3307'],
    check: ofEachKind('`metadata.labels`.', { templates: 'both' }, (kind) =>
      ContractVersions.some((contract) => claimedVersions(kind, contract).length > 0)
        ? []
        : [
            {
              manifest: kind.manifest,
              path: 'metadata.labels',
              message: `No label ${ContractVersions.map(labelOf).join(' or ')} with a version`,
              edit: `Add the label of the contract that the kind implements, such as ${labelOf('v1beta1')}: ${kind.crd.spec.versions[0]!.name}. In sources, labels belong in config/crd/kustomization.yaml.`,
            },
          ],
    ),
  },
  {
    id: 'label-versions',
    level: 'MUST',
    pages: ContractNames,
    section: 'All resources: version',
    versions: bothVersions,
    applies: 'the newest contract label',
    sentence: 'The greatest version in the newest contract label exists and is served.',
    why: 'Core requests objects in this version, unless a ClusterClass names another version of a template. Requests for a version that is not served return 404, and the reference stays unresolved.',
    cases: ['kubernetes-sigs/cluster-api-provider-cloudstack#329'],
    check: ofEachKind('The newest contract label against `spec.versions[*].served`.', { templates: 'both' }, (kind) =>
      labelProblems(kind).filter(({ isChosen }) => isChosen),
    ),
  },
  {
    id: 'other-label-versions',
    level: 'SHOULD',
    pages: ContractNames,
    section: 'All resources: version',
    versions: bothVersions,
    applies: 'labels of older contracts, and versions of a label that are not the greatest',
    sentence: 'Every other version in a contract label exists and is served, too.',
    why: 'Core v1.14 requests objects in these versions only if a ClusterClass names such a version of a template. A core that knows only an older contract requests the greatest version in the label of that contract. Upstream states the rule as MUST.',
    check: ofEachKind('Contract labels against `spec.versions[*].served`.', { templates: 'both' }, (kind) =>
      labelProblems(kind).filter(({ isChosen }) => !isChosen),
    ),
  },
  {
    id: 'newest-contract',
    level: 'SHOULD',
    pages: ContractNames,
    section: 'All resources: version',
    versions: ['v1beta1'],
    applies: 'kinds that claim contract v1beta1 and no newer one',
    sentence: 'The provider implements contract v1beta2: support of contract v1beta1 is deprecated.',
    why: 'Core v1.14 converts contract v1beta1 on the fly. Upstream plans to remove the conversion in April 2027; from then on core finds no version of the kind.',
    cases: ['syself/cluster-api-provider-hetzner#2017'],
    check: ofEachKind('Contract labels.', { templates: 'both' }, (kind) =>
      claimedVersions(kind, 'v1beta1').length === 0 || claimedVersions(kind, 'v1beta2').length > 0
        ? []
        : [
            {
              manifest: kind.manifest,
              path: `metadata.labels[${labelOf('v1beta1')}]`,
              message: `${kind.crd.spec.names.kind} claims contract v1beta1 alone, which upstream plans to drop in April 2027`,
              edit: 'Implement contract v1beta2 first (status.initialization, lists for maps), then add its label. The label alone breaks the provider.',
            },
          ],
    ),
  },
  {
    id: 'status-subresource',
    level: 'MUST',
    pages: ContractNames,
    section: 'All resources: version',
    versions: bothVersions,
    applies: 'kinds of objects, not templates, because the status of objects is part of the contract',
    sentence: 'Each served version has the status subresource.',
    why: 'Without the subresource, a client that changes labels or the spec can overwrite the status, and every status update increases metadata.generation.',
    check: ofEachKind('`spec.versions[*].subresources.status`.', {}, ({ manifest, crd }) =>
      crd.spec.versions.flatMap(({ name, served, subresources }, index) =>
        !served || subresources?.status !== undefined
          ? []
          : [
              {
                manifest,
                path: `spec.versions[${index}].subresources.status`,
                message: `Version ${name} has no status subresource`,
                edit: 'Add subresources: {status: {}} (+kubebuilder:subresource:status).',
              },
            ],
      ),
    ),
  },
  {
    id: 'conversion',
    level: 'MUST',
    pages: ContractNames,
    section: 'All resources: version',
    versions: bothVersions,
    applies: 'kinds with more than one served version',
    sentence: 'Served versions that differ are converted by a webhook.',
    why: 'With conversion strategy None the API server only replaces apiVersion and prunes. Fields that the other version does not have are lost without an error when core reads or writes in that version.',
    cases: ['kubernetes-sigs/cluster-api-provider-openstack#2940'],
    check: ofEachKind('`spec.conversion`, and whether schemas of served versions are equal.', { templates: 'both' }, (kind) => {
      const served = kind.crd.spec.versions.filter((version) => version.served)
      const shapes = served.map(({ schema }) => shapeOf(schema?.openAPIV3Schema ?? {}))
      const differing = served.filter((_, index) => !equal(shapes[index], shapes[0]))
      if (differing.length === 0 || kind.crd.spec.conversion?.strategy === 'Webhook') return []
      const names = [served[0]!, ...differing].map(({ name }) => name).join(', ')
      return [
        {
          manifest: kind.manifest,
          path: 'spec.conversion',
          message: `Versions ${names} have different schemas, and no conversion webhook`,
          edit: 'Set spec.conversion.strategy to Webhook, or serve one version only.',
        },
      ]
    }),
  },
  {
    id: 'template-defaults',
    level: 'SHOULD',
    pages: ContractNames,
    section: 'All resources: version',
    versions: bothVersions,
    applies: 'templates with more than one served version',
    sentence: 'A newer version of a template adds no default to a field that an older version leaves unset.',
    why: 'Core compares the template that a Machine was made from with the desired template. A default that appears with an upgrade of the provider makes the templates differ, and core replaces Machines although no user changed a template.',
    cases: ['kubernetes-sigs/cluster-api#6093'],
    check: ofEachKind('Defaults below `spec.template.spec` in each served version.', { templates: true }, ({ manifest, crd }) => {
      const served = crd.spec.versions.filter((version) => version.served).toSorted((a, b) => compareApiVersions(b.name, a.name))
      return served.slice(1).flatMap((newer, olderIndex) => {
        const olderDefaults = defaultsOf(templateSpec(served[olderIndex]!))
        const index = crd.spec.versions.indexOf(newer)
        return [...defaultsOf(templateSpec(newer))]
          .filter(([path, hasDefault]) => hasDefault && olderDefaults.get(path) === false)
          .map(([path]) => ({
            manifest,
            path: `spec.versions[${index}].schema.openAPIV3Schema: spec.template.spec.${path}`,
            message: `${newer.name} has a default for spec.template.spec.${path}, ${served[olderIndex]!.name} has none`,
            edit: 'Remove the default, and let the controller treat the absent field as this value.',
          }))
      })
    }),
  },
  {
    id: 'foreign-group-role',
    level: 'MUST',
    pages: ContractNames,
    section: 'All resources: API group',
    versions: bothVersions,
    applies:
      'kinds in a group other than infrastructure, bootstrap and controlplane of cluster.x-k8s.io; manifests with a ClusterRole, or a file with a Deployment',
    sentence:
      'A ClusterRole with the label cluster.x-k8s.io/aggregate-to-manager: "true" lets core read and write the kinds of the group.',
    why: "Core's own role covers upstream's groups alone. In another group its requests are forbidden: no reference is resolved, no owner reference is set.",
    check: {
      looksAt: 'ClusterRoles with the aggregation label: groups, resources and verbs.',
      run({ kinds, all, isRendered }) {
        const foreign = kinds.filter(({ crd }) => !upstreamGroups.test(crd.spec.group))
        const roles = all.filter(({ object }) => object.kind === 'ClusterRole')
        if (foreign.length === 0 || (roles.length === 0 && !isRendered)) return undefined
        const aggregated = roles.filter((role) => metadataOf(role).labels['cluster.x-k8s.io/aggregate-to-manager'] === 'true')
        return foreign.flatMap((kind): Problem[] => {
          const missing = missingVerbs(kind, aggregated)
          if (missing.length === 0) return []
          const { group, names } = kind.crd.spec
          return [
            {
              manifest: kind.manifest,
              path: 'spec.group',
              message: `Core is not allowed to ${missing.join(', ')} ${names.plural}.${group}: no ClusterRole with cluster.x-k8s.io/aggregate-to-manager: "true" allows it`,
              edit: `Add ${names.plural} of ${group} with these verbs to a ClusterRole with that label.`,
            },
          ]
        })
      },
    },
  },
  {
    id: 'owner-finalizers-role',
    level: 'MUST',
    pages: ContractNames,
    section: 'All resources: API group',
    versions: bothVersions,
    applies: 'providers that make an object the owner of another with blockOwnerDeletion',
    sentence: 'A client that sets blockOwnerDeletion has permission to update the finalizers of the owner.',
    why: 'On clusters that enforce permissions of owner references, creating the owned object without this permission is forbidden.',
    check: {
      looksAt:
        'Roles and ClusterRoles, for kinds that own Machines: control planes with `spec.machineTemplate` or another reference to infrastructure of their Machines, machine pools with `status.infrastructureMachineKind`. Manifests do not show which other owner references a controller sets.',
      run({ kinds, all }) {
        const owners = kinds.filter(ownsMachines)
        const roles = all.filter(({ object }) => object.kind === 'ClusterRole' || object.kind === 'Role')
        if (owners.length === 0 || roles.length === 0) return undefined
        return owners.flatMap(({ manifest, crd: { spec } }): Problem[] => {
          const resource = `${spec.names.plural}/finalizers`
          if (allows(roles, spec.group, [resource, '*/finalizers'], 'update')) return []
          return [
            {
              manifest,
              path: 'spec.names.plural',
              message: `No role allows updates of ${resource} in group ${spec.group}`,
              edit: `Add ${resource} with the verb update to the ClusterRole of the manager.`,
            },
          ]
        })
      },
    },
  },
  {
    id: 'printer-columns',
    level: 'MAY',
    pages: ContractNames,
    section: 'All resources: scope',
    versions: bothVersions,
    applies: 'kinds of objects, not templates',
    sentence: 'Served versions have printer columns, so that kubectl get shows more than name and age.',
    why: 'No effect on core. kubectl get shows users only the name and the age of an object.',
    check: ofEachKind('`spec.versions[*].additionalPrinterColumns`.', {}, ({ manifest, crd }) =>
      crd.spec.versions.flatMap(({ name, served, additionalPrinterColumns }, index) =>
        !served || (additionalPrinterColumns?.length ?? 0) > 0
          ? []
          : [
              {
                manifest,
                path: `spec.versions[${index}].additionalPrinterColumns`,
                message: `Version ${name} has no printer columns`,
                edit: 'Add columns for the cluster, for readiness and for age (+kubebuilder:printcolumn).',
              },
            ],
      ),
    ),
  },
  {
    id: 'short-names',
    level: 'MAY',
    pages: ContractNames,
    section: 'All resources: scope',
    versions: bothVersions,
    applies: 'kinds of objects, not templates',
    sentence: 'The kind has a short name or the category cluster-api.',
    why: 'No effect on core. kubectl get cluster-api does not list the kind, and users have no short name for it.',
    check: ofEachKind('`spec.names.shortNames` and `spec.names.categories`.', {}, ({ manifest, crd }) =>
      (crd.spec.names.shortNames?.length ?? 0) > 0 || crd.spec.names.categories?.includes('cluster-api')
        ? []
        : [
            {
              manifest,
              path: 'spec.names',
              message: 'Neither a short name nor the category cluster-api',
              edit: 'Add the category cluster-api to spec.names.categories.',
            },
          ],
    ),
  },
]
