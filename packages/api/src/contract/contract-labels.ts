/**
 * Reads the labels by which a CustomResourceDefinition declares its contract versions and the API versions that implement them, such as
 * `cluster.x-k8s.io/v1beta2: v1beta1_v1beta2`. Upstream: internal/contract/version.go.
 */
import { compareApiVersions, type KubeObject } from '@capstan/kube'
import { type ContractVersion, ContractVersions } from './field.ts'

/**
 * Returns the newest declared contract that core supports, and the greatest API version declared for it.
 *
 * @throws Error if no label of a contract that core supports has a value
 */
export function latestContract({ metadata }: KubeObject): { contract: ContractVersion; version: string } {
  for (const contract of ContractVersions) {
    const versions = metadata.labels?.[ContractLabelPrefix + contract]
    if (versions) return { contract, version: versions.split('_').sort(compareApiVersions)[0]! }
  }
  const expectedLabels = ContractVersions.map((version) => JSON.stringify(version)).join(' ')
  throw new Error(
    `cannot find any versions matching contract versions [${expectedLabels}] for CRD ${metadata.name} as contract version label(s) are either missing or empty (see https://cluster-api.sigs.k8s.io/developer/providers/contracts/overview.html#api-version-labels)`,
  )
}

/**
 * Returns the newest contract that core supports and whose label names `version`. If the labels of several contracts name it,
 * upstream selects one of these contracts at random.
 *
 * @throws Error if no label of a contract that core supports names `version`
 */
export function contractOfVersion({ metadata }: KubeObject, version: string): ContractVersion {
  for (const contract of ContractVersions) {
    if (metadata.labels?.[ContractLabelPrefix + contract]?.split('_').includes(version)) return contract
  }
  throw new Error(`cannot find any contract version matching version ${version} for CRD ${metadata.name}`)
}

const ContractLabelPrefix = 'cluster.x-k8s.io/'
