/**
 * Rules of clusterctl's contract, such as those about the metadata and components files of a release, and the rule about several instances
 * of a manager.
 */
import { ContractVersions } from '@capstan/api/contract'
import {
  type ContractName,
  claimedVersions,
  list,
  type Manifest,
  metadataOf,
  type ProviderKind,
  type ProviderManifests,
  record,
} from '../manifests.ts'
import { ownerChain } from '../live/checks/all-resources.ts'
import type { Problem, Rule } from '../rule.ts'

const bothVersions = ContractVersions
const pages = ['clusterctl'] as const

const isMetadata = ({ object }: Manifest): boolean =>
  object.kind === 'Metadata' && String(object.apiVersion).startsWith('clusterctl.cluster.x-k8s.io/')

interface Series {
  readonly index: number
  readonly major: number
  readonly minor: number
  readonly contract: string
}

const seriesOf = ({ object }: Manifest): Series[] =>
  list(object.releaseSeries).flatMap((entry, index) => {
    const { major, minor, contract } = record(entry)
    return typeof major === 'number' && typeof minor === 'number' && typeof contract === 'string'
      ? [{ index, major, minor, contract }]
      : []
  })

function metadataProblems(manifest: Manifest, { kinds, release }: ProviderManifests): Problem[] {
  const series = seriesOf(manifest)
  const entryCount = list(manifest.object.releaseSeries).length
  if (entryCount === 0 || series.length < entryCount) {
    const message = entryCount === 0 ? 'releaseSeries is empty' : 'an entry of releaseSeries lacks major, minor or contract'
    return [{ manifest, path: 'releaseSeries', message, edit: 'List each series as {major: 1, minor: 2, contract: v1beta1}.' }]
  }
  const greatest = series.toSorted((a, b) => b.major - a.major || b.minor - a.minor)[0]!
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(release ?? '') ?? []
  const current =
    major === undefined ? greatest : series.find((entry) => entry.major === Number(major) && entry.minor === Number(minor))
  if (current === undefined) {
    return [
      {
        manifest,
        path: 'releaseSeries',
        message: `No series covers release ${release}`,
        edit: `Add {major: ${major}, minor: ${minor}, contract: …}.`,
      },
    ]
  }
  const newestClaim = (kind: ProviderKind) => ContractVersions.find((contract) => claimedVersions(kind, contract).length > 0)
  return [...Map.groupBy(kinds, newestClaim)].flatMap(([claimed, claiming]): Problem[] => {
    if (claimed === undefined || claimed === current.contract) return []
    const names = claiming.map(({ crd }) => crd.metadata.name).join(', ')
    return [
      {
        manifest,
        path: `releaseSeries[${current.index}].contract`,
        message: `Series ${current.major}.${current.minor} has contract ${current.contract}, the newest label of ${names} is ${claimed}`,
        edit: `Set contract to ${claimed}, or change the labels of the CustomResourceDefinitions.`,
      },
    ]
  })
}

const providerLabel = 'cluster.x-k8s.io/provider'
const nameOf = (manifest: Manifest): string => `${String(manifest.object.kind)} ${metadataOf(manifest).name}`
const components = ({ all }: ProviderManifests): Manifest[] => all.filter((manifest) => !isMetadata(manifest))

/** Returns the containers named `manager` of a Deployment, or of another object with a pod template. */
const managersOf = ({ object }: Manifest): { readonly [field: string]: unknown }[] =>
  list(record(record(record(object.spec).template).spec).containers)
    .map(record)
    .filter(({ name }) => name === 'manager')

const isDeployment = ({ object }: Manifest): boolean => object.kind === 'Deployment'

/** Variables that `clusterctl generate cluster` sets. Upstream: the contract of clusterctl, common variables. */
const commonVariables = new Set([
  'CLUSTER_NAME',
  'NAMESPACE',
  'KUBERNETES_VERSION',
  'CONTROL_PLANE_MACHINE_COUNT',
  'WORKER_MACHINE_COUNT',
])

interface Variable {
  readonly name: string
  /** Place of a use in the manifest. */
  readonly path: string
  readonly manifest: Manifest
}

/** Returns the uses of variables that users must set: `${NAME}` or `${ NAME }`, but not `${NAME:=default}`, `$${NAME}` or a variable that clusterctl sets. */
function requiredVariables(manifest: Manifest): Variable[] {
  const variables: Variable[] = []
  const visit = (value: unknown, path: string): void => {
    if (typeof value === 'string') {
      for (const [, name = ''] of value.matchAll(/(?<!\$)\$\{\s*(\w+)\s*\}/g)) {
        if (!commonVariables.has(name)) variables.push({ name, path, manifest })
      }
    } else if (Array.isArray(value)) value.forEach((item, index) => visit(item, `${path}[${index}]`))
    else for (const [field, member] of Object.entries(record(value))) visit(member, path === '' ? field : `${path}.${field}`)
  }
  visit(manifest.object, '')
  return variables
}

/** The rule about several instances of a manager, which upstream's book states under two headings. */
const severalInstances: readonly {
  readonly id: string
  readonly contracts: readonly ContractName[]
  readonly section: string
}[] = [
  {
    id: 'infrastructure.several-instances',
    contracts: ['InfraCluster', 'InfraMachine', 'InfraMachinePool'],
    section: 'Multi tenancy',
  },
  {
    id: 'control-plane-and-bootstrap.several-instances',
    contracts: ['ControlPlane', 'BootstrapConfig'],
    section: 'Support for running multiple instances',
  },
]

export const clusterctlRules: readonly Rule[] = [
  {
    id: 'clusterctl.metadata',
    level: 'MUST',
    pages,
    section: 'Metadata YAML',
    versions: bothVersions,
    applies: 'manifests with a metadata file',
    sentence:
      'The metadata file has a series for the release. The contract of this series is the newest contract that the labels of the CustomResourceDefinitions claim.',
    why: 'clusterctl takes the contract from this file, and does not install or upgrade a provider whose contract is not compatible with that of core. Core takes the contract from the labels.',
    cases: ['metal3-io/cluster-api-provider-metal3#2793', 'kubernetes-sigs/cluster-api-provider-openstack#2875'],
    check: {
      looksAt:
        '`releaseSeries`: the series of the release (`--release`, or in the URL) or, if no release is given, the greatest, against the contract labels.',
      run(provider) {
        const files = provider.all.filter(isMetadata)
        return files.length === 0 ? undefined : files.flatMap((manifest) => metadataProblems(manifest, provider))
      },
    },
  },
  {
    id: 'clusterctl.provider-label',
    level: 'MUST',
    pages,
    section: 'Labels',
    versions: bothVersions,
    applies: 'components files',
    sentence: 'Every component has the label cluster.x-k8s.io/provider, with the same value.',
    why: 'clusterctl finds the components of a provider by the label. clusterctl adds the label to the components that it installs. Components that kubectl has installed without the label remain after an upgrade or deletion.',
    check: {
      looksAt: 'Labels of every object of a components file, which is a file with a Deployment.',
      run(provider) {
        if (!provider.isRendered) return undefined
        const manifests = components(provider)
        const counts = Map.groupBy(manifests, (manifest) => metadataOf(manifest).labels[providerLabel])
        const common = [...counts]
          .flatMap(([value, { length }]) => (typeof value === 'string' && value !== '' ? [{ value, length }] : []))
          .toSorted((a, b) => b.length - a.length)[0]?.value
        return manifests.flatMap((manifest): Problem[] => {
          const value = metadataOf(manifest).labels[providerLabel]
          if (value !== undefined && value === common) return []
          const expected = common ?? 'the name of the provider, such as infrastructure-foo'
          return [
            {
              manifest,
              path: `metadata.labels[${providerLabel}]`,
              message: `${nameOf(manifest)} has ${value === undefined ? 'no label' : `value ${JSON.stringify(value)} in label`} ${providerLabel}, expected ${expected}`,
              edit: `Add ${providerLabel}: ${common ?? 'infrastructure-foo'} to the labels in config/default/kustomization.yaml.`,
            },
          ]
        })
      },
    },
  },
  {
    id: 'clusterctl.one-namespace',
    level: 'MUST',
    pages,
    section: 'Target namespace',
    versions: bothVersions,
    applies: 'components files',
    sentence: 'There is at most one Namespace, and all namespaced components are in it.',
    why: 'clusterctl stops with an error when there are several Namespaces, and moves every namespaced component into the target namespace.',
    check: {
      looksAt: 'Objects of kind Namespace, and `metadata.namespace` of all other objects, except those in kube-system.',
      run(provider) {
        if (!provider.isRendered) return undefined
        const namespaces = provider.all.filter(({ object }) => object.kind === 'Namespace')
        const [first, ...others] = namespaces
        const expected = first && metadataOf(first).name
        return [
          ...others.map((manifest) => ({
            manifest,
            path: 'metadata.name',
            message: `There is another Namespace ${metadataOf(manifest).name}, expected only ${expected}`,
            edit: 'Remove this Namespace, and put all components into one namespace.',
          })),
          ...components(provider).flatMap((manifest): Problem[] => {
            const { namespace } = metadataOf(manifest)
            if (expected === undefined || namespace === undefined || namespace === expected || namespace === 'kube-system')
              return []
            const message = `${nameOf(manifest)} is in namespace ${namespace}, expected ${expected}`
            return [{ manifest, path: 'metadata.namespace', message, edit: `Set metadata.namespace to ${expected}.` }]
          }),
        ]
      },
    },
  },
  {
    id: 'clusterctl.manager-container',
    level: 'MUST',
    pages,
    section: 'Controllers & Watching namespace',
    versions: bothVersions,
    applies: 'manifests with a Deployment',
    sentence: 'The container that runs the controllers is called manager.',
    why: 'clusterctl init --wait-providers waits only for Deployments that have a container with this name.',
    check: {
      looksAt: 'Names of the containers of Deployments.',
      run({ all }) {
        const deployments = all.filter(isDeployment)
        if (deployments.length === 0) return undefined
        if (deployments.some((deployment) => managersOf(deployment).length > 0)) return []
        return [
          {
            manifest: deployments[0]!,
            path: 'spec.template.spec.containers',
            message: 'No Deployment has a container called manager',
            edit: 'Rename the container that runs the controllers to manager.',
          },
        ]
      },
    },
  },
  {
    id: 'clusterctl.variables',
    level: 'SHOULD',
    pages,
    section: 'Variables',
    versions: bothVersions,
    applies: 'components files and templates with variables',
    sentence: 'Documentation for users lists the variables.',
    why: 'Users do not know which variables to set. clusterctl stops when a variable without a default is not set.',
    check: {
      looksAt:
        'Variables without a default, such as `${REGION}`, in manifests of a folder with Markdown files: a file must mention their names. Names that clusterctl sets, such as CLUSTER_NAME, need no mention.',
      run({ all, documentation }) {
        const variables = Map.groupBy(all.flatMap(requiredVariables), ({ name }) => name)
        if (documentation === undefined || variables.size === 0) return undefined
        const mentioned = new Set(documentation.match(/\w+/g))
        return [...variables].flatMap(([name, [first]]): Problem[] =>
          mentioned.has(name)
            ? []
            : [
                {
                  manifest: first!.manifest,
                  path: first!.path,
                  message: `No documentation mentions variable ${name}, which has no default`,
                  edit: `Describe ${name} in a Markdown file, or give it a default: \${${name}:=…}.`,
                },
              ],
        )
      },
    },
  },
  {
    id: 'clusterctl.owner-references',
    level: 'MUST',
    pages,
    section: 'OwnerReferences chain',
    versions: bothVersions,
    applies: 'always',
    sentence: 'Objects of a provider are owned by a Cluster, directly or through other objects.',
    why: 'clusterctl move leaves objects without such an owner behind, unless another of its rules applies, such as the label clusterctl.cluster.x-k8s.io/move.',
    check: { none: 'behaviour of the controller' },
    live: [ownerChain],
  },
  ...severalInstances.map(
    ({ id, contracts, section }): Rule => ({
      id,
      level: 'MAY',
      pages: contracts,
      section,
      versions: bothVersions,
      applies: 'providers of which several instances may run',
      sentence: 'The manager has the flags --namespace and --watch-filter.',
      why: 'Without the flags, several instances reconcile the same objects.',
      cases: ['outscale/cluster-api-provider-outscale#330'],
      check: {
        looksAt:
          'Arguments of containers called manager that do not mention both flags: a hint only, since a binary may have flags that no manifest sets.',
        run({ all, kinds }) {
          const applies = kinds.some(({ contract }) => contracts.includes(contract))
          const workloads = all.filter((manifest) => managersOf(manifest).length > 0)
          if (!applies || workloads.length === 0) return undefined
          return workloads.flatMap((manifest): Problem[] => {
            const args = managersOf(manifest).flatMap((container) => [...list(container.args), ...list(container.command)])
            const missing = ['--namespace', '--watch-filter'].filter((flag) => !args.some((arg) => String(arg).startsWith(flag)))
            if (missing.length === 0) return []
            const message = `The arguments of container manager do not mention ${missing.join(' and ')}`
            return [
              {
                manifest,
                path: 'spec.template.spec.containers[manager].args',
                message,
                edit: 'Verify that the manager has the flags, and mention them in its arguments, so that users find them.',
              },
            ]
          })
        },
      },
    }),
  ),
]
