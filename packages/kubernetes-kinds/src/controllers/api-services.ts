/**
 * Maintains an APIService for every version of every group except apiregistration.k8s.io: for built-in versions from the start, for versions
 * of custom resources while a CRD serves them. API aggregation is not implemented. Upstream: kube-aggregator, pkg/controllers/autoregister, and
 * pkg/controlplane/apiserver/aggregator.go, v1.36.
 */
import { type CustomResourceDefinition, isReason, timestamp, unknownKind, type UnknownObject } from '@capstan/kube'
import { builtins } from '../builtin-resources.ts'
import { isBuiltin, priorityOf } from '../group-priority.ts'
import { type ControllerOptions, WorkQueue } from '@capstan/apiserver/kinds'

const APIService = unknownKind({
  apiVersion: 'apiregistration.k8s.io/v1',
  kind: 'APIService',
  plural: 'apiservices',
  scope: 'Cluster',
})
const resource = 'apiservices.apiregistration.k8s.io'
const crdResource = 'customresourcedefinitions.apiextensions.k8s.io'
const automanaged = 'kube-aggregator.kubernetes.io/automanaged'

type Options = Omit<ControllerOptions, 'registry'>

export function runAPIServices({ store, client, clock, log }: Options): () => void {
  const queue = new WorkQueue({ name: resource, clock, log, run })
  const builtinGroupVersions = new Map<string, { group: string; version: string }>()
  for (const { group, version } of builtins.all) {
    // Upstream has no APIService for the group of APIServices.
    if (group !== 'apiregistration.k8s.io') builtinGroupVersions.set(nameOf(group, version), { group, version })
  }
  /** APIService names of the versions that each CRD serves. Sets, because a CRD may have thousands of versions. */
  const custom = new Map<string, ReadonlySet<string>>()
  const trackDefinition = (crdName: string, names: readonly string[]) => {
    const before = custom.get(crdName) ?? []
    if (names.length === 0) custom.delete(crdName)
    else custom.set(crdName, new Set(names))
    for (const name of [...before, ...names]) queue.add(name)
  }
  const stops = [
    store.subscribe(crdResource, ({ key, object }) =>
      trackDefinition(key.name, namesOf(object as CustomResourceDefinition | undefined)),
    ),
    store.subscribe(resource, ({ key }) => queue.add(key.name)),
  ]
  for (const name of builtinGroupVersions.keys()) queue.add(name)
  for (const definition of store.list(crdResource))
    trackDefinition(definition.metadata.name, namesOf(definition as CustomResourceDefinition))
  return () => {
    for (const stop of stops) stop()
    queue.close()
  }

  async function run(name: string): Promise<void> {
    const stored = store.get({ resource, namespace: '', name })
    const expected = builtinGroupVersions.get(name) ?? customVersion(name)
    const managed = stored?.metadata.labels?.[automanaged]
    try {
      if (expected && !stored) await client.create(APIService, apiServiceOf(expected))
      else if (!expected && managed === 'true') await client.delete(APIService, { name })
      else if (stored) await reportUnavailable(stored as UnknownObject)
    } catch (err) {
      if (!isReason(err, 'AlreadyExists', 'NotFound')) throw err
    }
  }

  /** Writes Available=False into an APIService that has a Service and no conditions yet, because aggregation is not implemented. */
  async function reportUnavailable({ metadata: { name }, spec, status }: UnknownObject): Promise<void> {
    const { service } = spec as { service?: { namespace: string; name: string } }
    if (!service || (status as { conditions?: unknown[] } | undefined)?.conditions) return
    const serviceExists = store.get({ resource: 'services', ...service })
    const condition = {
      type: 'Available',
      status: 'False',
      lastTransitionTime: timestamp(clock.now()),
      ...(serviceExists
        ? { reason: 'AggregationNotSupported', message: 'this server does not forward requests to other servers' }
        : {
            reason: 'ServiceNotFound',
            message: `service/${service.name} in ${JSON.stringify(service.namespace)} is not present`,
          }),
    }
    const body = { status: { conditions: [condition] } }
    await client.patch(APIService, { name }, { type: 'merge', body }, { subresource: 'status' })
  }

  function customVersion(name: string): { group: string; version: string } | undefined {
    const isServed = [...custom.values()].some((names) => names.has(name))
    const [version = ''] = name.split('.', 1)
    return isServed ? { group: name.slice(version.length + 1), version } : undefined
  }
}

const nameOf = (group: string, version: string): string => `${version}.${group}`

/** Returns the names of the APIServices of a CRD; none while the CRD is being deleted. */
function namesOf(definition: CustomResourceDefinition | undefined): string[] {
  if (!definition || definition.metadata.deletionTimestamp !== undefined) return []
  const { group, versions } = definition.spec
  return versions.filter(({ served }) => served).map(({ name }) => nameOf(group, name))
}

function apiServiceOf({ group, version }: { group: string; version: string }) {
  const groupVersion = `${group}/${version}`
  const priority = priorityOf(groupVersion)
  return {
    metadata: { name: nameOf(group, version), labels: { [automanaged]: isBuiltin(groupVersion) ? 'onstart' : 'true' } },
    spec: {
      ...(group === '' ? {} : { group }),
      version,
      groupPriorityMinimum: priority.group,
      versionPriority: priority.version,
    },
  }
}
