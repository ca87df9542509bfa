/**
 * An APIService for every group and version that is served: those of the server's own from the start, those of custom resources as
 * long as a definition serves them. Nothing is served in the place of others: aggregation is not there.
 * Upstream: kube-aggregator, pkg/controllers/autoregister, and pkg/controlplane/apiserver/aggregator.go, v1.36.
 */
import { type CustomResourceDefinition, isReason, timestamp, unknownKind, type UnknownObject } from '@capstan/kube'
import { builtins } from '../registry/builtin.ts'
import type { ControllerOptions } from './namespaces.ts'
import { WorkQueue } from './work-queue.ts'

const APIService = unknownKind({
  apiVersion: 'apiregistration.k8s.io/v1',
  kind: 'APIService',
  plural: 'apiservices',
  scope: 'Cluster',
})
const resource = 'apiservices.apiregistration.k8s.io'
const definitions = 'customresourcedefinitions.apiextensions.k8s.io'
const automanaged = 'kube-aggregator.kubernetes.io/automanaged'

/** In which order groups are shown, and the versions of a group. */
interface Priority {
  readonly group: number
  readonly version: number
}

const priorities: { readonly [groupVersion: string]: Priority } = {
  '/v1': { group: 18_000, version: 1 },
  'apps/v1': { group: 17_800, version: 15 },
  'events.k8s.io/v1': { group: 17_750, version: 15 },
  'authentication.k8s.io/v1': { group: 17_700, version: 15 },
  'authorization.k8s.io/v1': { group: 17_600, version: 15 },
  'autoscaling/v1': { group: 17_500, version: 15 },
  'autoscaling/v2': { group: 17_500, version: 30 },
  'batch/v1': { group: 17_400, version: 15 },
  'certificates.k8s.io/v1': { group: 17_300, version: 15 },
  'networking.k8s.io/v1': { group: 17_200, version: 15 },
  'policy/v1': { group: 17_100, version: 15 },
  'rbac.authorization.k8s.io/v1': { group: 17_000, version: 15 },
  'storage.k8s.io/v1': { group: 16_800, version: 15 },
  'apiextensions.k8s.io/v1': { group: 16_700, version: 15 },
  'admissionregistration.k8s.io/v1': { group: 16_700, version: 15 },
  'scheduling.k8s.io/v1': { group: 16_600, version: 15 },
  'coordination.k8s.io/v1': { group: 16_500, version: 15 },
  'node.k8s.io/v1': { group: 16_300, version: 15 },
  'discovery.k8s.io/v1': { group: 16_200, version: 15 },
  'resource.k8s.io/v1': { group: 16_200, version: 21 },
  'flowcontrol.apiserver.k8s.io/v1': { group: 16_100, version: 21 },
}
const ofCustomResources: Priority = { group: 1000, version: 100 }

type Options = Omit<ControllerOptions, 'registry'>

export function runAPIServices({ store, client, clock, log }: Options): () => void {
  const queue = new WorkQueue({ name: resource, clock, log, run })
  const own = new Map<string, { group: string; version: string }>()
  for (const { group, version } of builtins.all) {
    // Upstream: who keeps the register is not in it.
    if (group !== 'apiregistration.k8s.io') own.set(nameOf(group, version), { group, version })
  }
  const stops = [
    store.subscribe(definitions, ({ object, previous }) => {
      for (const one of [object, previous])
        for (const name of namesOf(one as CustomResourceDefinition | undefined)) queue.add(name)
    }),
    store.subscribe(resource, ({ key }) => queue.add(key.name)),
  ]
  for (const name of own.keys()) queue.add(name)
  for (const one of store.list(definitions)) for (const name of namesOf(one as CustomResourceDefinition)) queue.add(name)
  return () => {
    for (const stop of stops) stop()
    queue.close()
  }

  async function run(name: string): Promise<void> {
    const found = store.get({ resource, namespace: '', name })
    const wanted = own.get(name) ?? customVersion(name)
    const managed = found?.metadata.labels?.[automanaged]
    try {
      if (wanted && !found) await client.create(APIService, serviceOf(wanted))
      else if (!wanted && managed === 'true') await client.delete(APIService, { name })
      else if (found) await sayWhyNot(found as UnknownObject)
    } catch (err) {
      if (!isReason(err, 'AlreadyExists', 'NotFound')) throw err
    }
  }

  /** What is behind a Service is not reached. */
  async function sayWhyNot({ metadata: { name }, spec, status }: UnknownObject): Promise<void> {
    const { service } = spec as { service?: { namespace: string; name: string } }
    if (!service || (status as { conditions?: unknown[] } | undefined)?.conditions) return
    const isThere = store.get({ resource: 'services', ...service })
    const condition = {
      type: 'Available',
      status: 'False',
      lastTransitionTime: timestamp(clock.now()),
      ...(isThere
        ? { reason: 'AggregationNotSupported', message: 'this server does not pass requests on to others' }
        : {
            reason: 'ServiceNotFound',
            message: `service/${service.name} in ${JSON.stringify(service.namespace)} is not present`,
          }),
    }
    const body = { status: { conditions: [condition] } }
    await client.patch(APIService, { name }, { type: 'merge', body }, { subresource: 'status' })
  }

  function customVersion(name: string): { group: string; version: string } | undefined {
    for (const one of store.list(definitions) as readonly CustomResourceDefinition[]) {
      if (one.metadata.deletionTimestamp === undefined && namesOf(one).includes(name)) {
        const [version = ''] = name.split('.')
        return { group: one.spec.group, version }
      }
    }
    return undefined
  }
}

const nameOf = (group: string, version: string): string => `${version}.${group}`

const namesOf = (definition: CustomResourceDefinition | undefined): string[] =>
  definition?.spec.versions.filter(({ served }) => served).map(({ name }) => nameOf(definition.spec.group, name)) ?? []

function serviceOf({ group, version }: { group: string; version: string }) {
  const known = priorities[`${group}/${version}`]
  const priority = known ?? ofCustomResources
  return {
    metadata: { name: nameOf(group, version), labels: { [automanaged]: known ? 'onstart' : 'true' } },
    spec: {
      ...(group === '' ? {} : { group }),
      version,
      groupPriorityMinimum: priority.group,
      versionPriority: priority.version,
    },
  }
}
