/** Resources of an API server: built-in resources, shared by all servers of the process, and custom resources. */
import { equal } from '@capstan/kube'
import type { FlowTable } from './flow-schema.ts'
import type { ProtobufMessages, Resource, Resources } from './resource.ts'
import type { ResourceInfo } from './resource-info.ts'

/** Built-in resources and the tables that describe them, shared by all servers of a process. */
export interface BuiltinResources {
  /** All built-in resources, in the order in which discovery lists their groups. */
  readonly all: readonly ResourceInfo[]
  /** `autoscaling/v1` Scale of namespaced and of cluster-scoped objects: only a format of the scale subresource, so not in `all`. */
  readonly scale: { readonly namespace: ResourceInfo; readonly cluster: ResourceInfo }
  readonly protobufMessages: ProtobufMessages
  /** Returns the OpenAPI schemas with these names, and all schemas that they refer to. */
  schemas(names: Iterable<string>): ReadonlyMap<string, object>
  /** Reports whether a subresource opens a connection to a container, a node or a Service instead of reading or writing an object. */
  isConnection(subresource: string | undefined): boolean
  /** FlowSchemas that select the priority level of a request, and the resources that are served even when memory is nearly used up. */
  readonly flowTable: FlowTable
}

export class Registry implements Resources {
  readonly #builtins: BuiltinResources
  readonly #byId: ReadonlyMap<string, ResourceInfo>
  #custom = new Map<string, ResourceInfo>()
  #all: readonly ResourceInfo[] | undefined
  #generation = 0
  readonly #servedSince = new Map<string, number>()
  readonly #removalListeners = new Map<string, Set<() => void>>()

  constructor(builtins: BuiltinResources) {
    this.#builtins = builtins
    this.#byId = byId(builtins)
  }

  get scale(): ResourceInfo {
    return this.#builtins.scale.namespace
  }

  scaleFor({ namespaced }: ResourceInfo): ResourceInfo {
    return this.#builtins.scale[namespaced ? 'namespace' : 'cluster']
  }

  get protobufMessages(): ProtobufMessages {
    return this.#builtins.protobufMessages
  }

  schemas(names: Iterable<string>): ReadonlyMap<string, object> {
    return this.#builtins.schemas(names)
  }

  isConnection(subresource: string | undefined): boolean {
    return this.#builtins.isConnection(subresource)
  }

  get flowTable(): FlowTable {
    return this.#builtins.flowTable
  }

  get generation(): number {
    return this.#generation
  }

  find(group: string, version: string, plural: string): ResourceInfo | undefined {
    const id = `${group}/${version}/${plural}`
    return this.#byId.get(id) ?? this.#custom.get(id)
  }

  list(): readonly ResourceInfo[] {
    return (this.#all ??= [...this.#builtins.all, ...this.#custom.values()])
  }

  /**
   * Returns the resource whose objects are stored under `storage`, such as `deployments.apps`: in its storage version if that is served,
   * otherwise in another served version.
   */
  stored(storage: string): ResourceInfo | undefined {
    const served = this.list().filter((info) => info.storage === storage)
    return served.find((info) => info.version === info.storageVersion) ?? served[0]
  }

  /** Returns the resource of a kind, in the first version of the list. */
  ofKind(group: string, kind: string): ResourceInfo | undefined {
    return this.list().find((info) => info.group === group && info.kind === kind)
  }

  /** Returns the revision since which a custom resource is served; 0 if it is served from the start of the server. */
  servedSince(storage: string): number {
    return this.#servedSince.get(storage) ?? 0
  }

  /**
   * Replaces the served versions of a custom resource; with an empty list, the resource is no longer served. `since`: the revision from which
   * a new resource is served; absent for other changes, and for resources that exist when the server starts.
   */
  serve(storage: string, versions: readonly ResourceInfo[], since?: number): void {
    if (since !== undefined) this.#servedSince.set(storage, since)
    const next = new Map([...this.#custom].filter(([, info]) => info.storage !== storage))
    for (const info of versions) next.set(idOf(info), info)
    const changedIds = [...this.#custom].filter(([id, info]) => !sameObjects(info, next.get(id))).map(([id]) => id)
    this.#custom = next
    this.#all = undefined
    this.#generation++
    for (const id of changedIds) for (const listener of this.#removalListeners.get(id) ?? []) listener()
  }

  /** Calls `listener` when this version is no longer served, or its storage version or conversion changes. Returns a function to unsubscribe. */
  onRemoval(resource: Resource, listener: () => void): () => void {
    if (resource.builtin) return () => {}
    const id = idOf(resource)
    let listeners = this.#removalListeners.get(id)
    if (!listeners) this.#removalListeners.set(id, (listeners = new Set()))
    listeners.add(listener)
    return () => listeners.delete(listener)
  }
}

/** Reports whether clients still get the same objects in a version. If not, watches of the version end, so that clients watch again. */
const sameObjects = (before: ResourceInfo, after: ResourceInfo | undefined): boolean =>
  after !== undefined && before.storageVersion === after.storageVersion && equal(before.conversion, after.conversion)

/** Returns the built-in resources by `idOf`; all servers of a process share the index. */
function byId(builtins: BuiltinResources): ReadonlyMap<string, ResourceInfo> {
  let index = indexes.get(builtins)
  if (!index) indexes.set(builtins, (index = new Map(builtins.all.map((info) => [idOf(info), info]))))
  return index
}
const indexes = new WeakMap<BuiltinResources, ReadonlyMap<string, ResourceInfo>>()

const idOf = ({ group, version, plural }: Resource): string => `${group}/${version}/${plural}`
