/** Contract of the infrastructure of a Cluster. Upstream: internal/contract/infrastructure_cluster.go, v1.14. */
import { compareText } from '@capstan/kube'
import type { FailureDomain } from '../core/v1beta2/cluster.ts'
import type { ContractEndpoint } from './common.ts'
import { failureFields, templateFields } from './common.ts'
import type { ContractVersion } from './field.ts'
import { field, readField } from './field.ts'

type FailureDomainMap = { [name: string]: { controlPlane?: boolean; attributes?: { [key: string]: string } } }

export const InfraClusterContract = {
  provisioned: field<boolean>(
    { v1beta1: 'status.ready', v1beta2: 'status.initialization.provisioned' },
    'True once the infrastructure is provisioned. Core then copies the failure domains, and the endpoint if the Cluster has none, and never sets status.initialization.infrastructureProvisioned of the Cluster back to false.',
    { mandatory: true },
  ),
  controlPlaneEndpoint: field<ContractEndpoint>(
    'spec.controlPlaneEndpoint',
    'Host and port of the API server. Mandatory unless the control plane or the user provides them.',
  ),
  failureDomains: field<FailureDomain[] | FailureDomainMap>(
    'status.failureDomains',
    'Failure domains of the Machines: a list in contract v1beta2, a map by name in v1beta1.',
  ),
  ...failureFields,
}

export const InfraClusterTemplateContract = templateFields

/** Limits of `Cluster.status.failureDomains`. */
const maxFailureDomains = 100
const maxFailureDomainLength = 256

/**
 * Returns the failure domains of an InfraCluster in the form of the Cluster's status, sorted by name.
 *
 * @throws TypeError when `status` is not an object; when the failure domains are not a list of entries with a name (contract v1beta2) or a
 * map from names (v1beta1); when two have the same name; or when they violate the limits of `Cluster.status.failureDomains`
 */
export function failureDomainsOf(infraCluster: object, contract: ContractVersion): FailureDomain[] {
  const value: unknown = readField(infraCluster, InfraClusterContract.failureDomains, contract)
  if (value === undefined || value === null) return []
  const path = InfraClusterContract.failureDomains.paths[contract]
  const type = Array.isArray(value) ? 'list' : typeof value
  if (contract === 'v1beta1' && type !== 'object') throw new TypeError(`${path}: expected a map, got ${type}`)
  if (contract === 'v1beta2' && type !== 'list') throw new TypeError(`${path}: expected a list, got ${type}`)
  const list = Array.isArray(value)
    ? (value as FailureDomain[])
    : Object.entries(value).map(([name, domain]) => ({ name, ...(domain as object) }) as FailureDomain)
  if (list.length > maxFailureDomains) {
    throw new TypeError(`${path}: expected at most ${maxFailureDomains} entries, got ${list.length}`)
  }
  const names = new Set<unknown>()
  for (const domain of list as unknown[]) {
    const name = typeof domain === 'object' && domain !== null ? (domain as { name?: unknown }).name : undefined
    if (typeof name !== 'string' || name === '') throw new TypeError(`${path}: expected entries with a name`)
    if (name.length > maxFailureDomainLength) {
      throw new TypeError(`${path}: expected names of at most ${maxFailureDomainLength} characters, got ${name.length}`)
    }
    if (names.has(name)) throw new TypeError(`${path}: expected unique names, got ${name} twice`)
    names.add(name)
  }
  return list
    .map(({ name, controlPlane, attributes }) => ({
      name,
      controlPlane: controlPlane ?? false,
      ...(attributes === undefined ? {} : { attributes }),
    }))
    .sort((a, b) => compareText(a.name, b.name))
}

/** Whether host and port of an endpoint are set. */
export const isValidEndpoint = (endpoint: ContractEndpoint | undefined): endpoint is { host: string; port: number } =>
  endpoint?.host !== undefined && endpoint.host !== '' && endpoint.port !== undefined && endpoint.port !== 0
