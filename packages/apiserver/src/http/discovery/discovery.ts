/** Discovery documents: the served resources, of all groups in one document or of single groups. */
import { createHash } from 'node:crypto'
import { compareApiVersions, largest } from '@capstan/kube'
import { isStored, type Resource, type Subresource } from '../../registry/resource.ts'
import { healthPaths } from '../health.ts'

export interface GroupVersions {
  readonly group: string
  /** Preferred version first. */
  readonly versions: readonly { readonly version: string; readonly resources: readonly Resource[] }[]
}

/**
 * Groups resources by API group and version, in the order of discovery: groups by priority and name, preferred versions first, resources by
 * plural. The name of the core group is empty.
 */
export function groupsOf(resources: readonly Resource[]): GroupVersions[] {
  const groups = new Map<string, Map<string, Resource[]>>()
  for (const resource of resources) {
    const versions = groups.get(resource.group) ?? new Map<string, Resource[]>()
    groups.set(resource.group, versions)
    const served = versions.get(resource.version)
    if (served) served.push(resource)
    else versions.set(resource.version, [resource])
  }
  return [...groups]
    .sort(([a, left], [b, right]) => priorityOf(right) - priorityOf(left) || (a < b ? -1 : 1))
    .map(([group, versions]) => ({
      group,
      versions: [...versions]
        .sort(([a], [b]) => compareApiVersions(a, b))
        .map(([version, served]) => ({ version, resources: served.toSorted((a, b) => (a.plural < b.plural ? -1 : 1)) })),
    }))
}

/** Aggregated discovery: body of `/api` and `/apis` for Kubernetes clients since 1.30. Upstream: apidiscovery.k8s.io/v2. */
export const aggregatedDiscovery = (groups: readonly GroupVersions[]): object => ({
  kind: 'APIGroupDiscoveryList',
  apiVersion: 'apidiscovery.k8s.io/v2',
  metadata: {},
  items: groups.map(({ group, versions }) => ({
    metadata: group === '' ? {} : { name: group },
    versions: versions.map(({ version, resources }) => ({
      version,
      resources: resources.map(resourceDiscovery),
      freshness: 'Current',
    })),
  })),
})

function resourceDiscovery(resource: Resource): object {
  const { plural, singular, namespaced, shortNames, categories } = resource
  return {
    resource: plural,
    responseKind: kindOf(resource),
    scope: namespaced ? 'Namespaced' : 'Cluster',
    singularResource: singular,
    verbs: verbsOf(resource),
    ...(shortNames.length === 0 ? {} : { shortNames }),
    ...(categories.length === 0 ? {} : { categories }),
    ...(subresourcesOf(resource).length === 0
      ? {}
      : {
          subresources: subresourcesOf(resource).map(({ name, verbs, kind }) => ({
            subresource: name,
            responseKind: kind,
            verbs,
          })),
        }),
  }
}

/** Reports whether the group has built-in kinds. Upstream's router handles only such groups, not groups of custom resources. */
export const hasBuiltin = (group: GroupVersions | undefined): boolean =>
  group?.versions.some(({ resources }) => resources[0]?.builtin) === true

/** Item of `/apis`. With apiVersion and kind, it is the body of `/apis/GROUP`. */
export const apiGroup = ({ group, versions }: GroupVersions): object => {
  const groupVersions = versions.map(({ version }) => ({ groupVersion: `${group}/${version}`, version }))
  return { name: group, versions: groupVersions, preferredVersion: groupVersions[0] }
}

/** Body of `/apis`. */
export const apiGroupList = (groups: readonly GroupVersions[]): object => ({
  kind: 'APIGroupList',
  apiVersion: 'v1',
  groups: groups.filter(({ group }) => group !== '').map(apiGroup),
})

/** Body of `/api`. */
export const apiVersions = (core: GroupVersions | undefined, serverAddress: string): object => ({
  kind: 'APIVersions',
  versions: (core?.versions ?? []).map(({ version }) => version),
  serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress }],
})

/** Body of `/api/VERSION` and `/apis/GROUP/VERSION`. */
export function apiResourceList(group: string, version: string, resources: readonly Resource[]): object {
  const list = resources.flatMap((resource) => {
    const { plural, singular, namespaced, kind, shortNames, categories } = resource
    return [
      {
        name: plural,
        singularName: singular,
        namespaced,
        kind,
        verbs: verbsOf(resource),
        ...(shortNames.length === 0 ? {} : { shortNames }),
        ...(categories.length === 0 ? {} : { categories }),
        // Kinds whose objects are not stored have no storage version.
        ...(isStored(resource) ? { storageVersionHash: storageVersionHash(resource) } : {}),
      },
      ...subresourcesOf(resource).map((subresource) => ({
        name: `${plural}/${subresource.name}`,
        singularName: '',
        namespaced,
        ...(subresource.kind.group === '' || subresource.kind.group === group
          ? {}
          : { group: subresource.kind.group, version: subresource.kind.version }),
        kind: subresource.kind.kind,
        verbs: subresource.verbs,
      })),
    ]
  })
  return {
    kind: 'APIResourceList',
    // Upstream: the list of the core group has no apiVersion.
    ...(group === '' ? {} : { apiVersion: 'v1' }),
    groupVersion: group === '' ? version : `${group}/${version}`,
    resources: list,
  }
}

/** Hash from which clients detect a change of the storage version. Upstream: k8s.io/apiserver/pkg/endpoints/discovery. */
const storageVersionHash = ({ group, storageGroup = group, storageVersion, kind }: Resource): string => {
  // Upstream stores CustomResourceDefinitions in a version that is no longer served.
  const version = group === 'apiextensions.k8s.io' ? 'v1beta1' : storageVersion
  return createHash('sha256').update(`${storageGroup}/${version}/${kind}`).digest().subarray(0, 8).toString('base64')
}

const allVerbs = ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch'] as const

const verbsOf = ({ verbs }: Resource): readonly string[] => verbs ?? allVerbs

export function subresourcesOf(resource: Resource): readonly Subresource[] {
  if (resource.subresources) return resource.subresources
  const subresources: Subresource[] = []
  const verbs = ['get', 'patch', 'update']
  if (resource.scale) subresources.push({ name: 'scale', kind: { group: 'autoscaling', version: 'v1', kind: 'Scale' }, verbs })
  if (resource.statusSubresource) subresources.push({ name: 'status', kind: kindOf(resource), verbs })
  return subresources
}

/** Upstream leaves group and version of built-in kinds empty, which stands for the group and version in which the resource is listed. */
const kindOf = ({ builtin, group, version, kind }: Resource) =>
  builtin ? { group: '', version: '', kind } : { group, version, kind }

/** Body of `/`: the paths of documents, of health checks, and of API groups and their versions. */
export function apiPaths(groups: readonly GroupVersions[]): object {
  const paths = [
    '/.well-known/openid-configuration',
    '/api',
    '/apis',
    '/apis/',
    '/flagz',
    '/metrics',
    '/metrics/slis',
    '/openapi/v2',
    '/openapi/v3',
    '/openapi/v3/',
    '/openid/v1/jwks',
    '/statusz',
    '/version',
    ...healthPaths(),
  ]
  for (const { group, versions } of groups) {
    if (group !== '') paths.push(`/apis/${group}`)
    for (const { version } of versions) paths.push(group === '' ? `/api/${version}` : `/apis/${group}/${version}`)
  }
  return { paths: paths.sort() }
}

const priorityOf = (versions: ReadonlyMap<string, readonly Resource[]>): number =>
  largest([...versions.values()].map(([resource]) => resource?.groupPriority ?? CustomGroupPriority))

/** Priority of all groups of custom resources, as in upstream. */
const CustomGroupPriority = 1000
