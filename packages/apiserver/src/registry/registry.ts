/** Every resource of one plane: built-in ones, shared by all planes, and those that CustomResourceDefinitions add. */
import { equal } from '@capstan/kube'
import type { Resource, Resources } from '../engine.ts'
import { builtins } from './builtin.ts'
import type { Definition } from './definition.ts'

export class Registry implements Resources {
  #custom = new Map<string, Definition>()
  #all: readonly Definition[] | undefined
  #generation = 0
  readonly #beginnings = new Map<string, number>()
  readonly #removals = new Map<string, Set<() => void>>()

  get generation(): number {
    return this.#generation
  }

  find(group: string, version: string, plural: string): Definition | undefined {
    const id = `${group}/${version}/${plural}`
    return builtins.byId.get(id) ?? this.#custom.get(id)
  }

  list(): readonly Definition[] {
    return (this.#all ??= [...builtins.all, ...this.#custom.values()])
  }

  /** What the store holds under `storage`, in its storage version if that is served. */
  stored(storage: string): Definition | undefined {
    const served = this.list().filter((definition) => definition.storage === storage)
    return served.find((definition) => definition.version === definition.storageVersion) ?? served[0]
  }

  /** The resource of a kind, whichever version. */
  ofKind(group: string, kind: string): Definition | undefined {
    return this.list().find((definition) => definition.group === group && definition.kind === kind)
  }

  /** The revision at which a custom resource came to be; 0 when it has been there for longer than this process. */
  servedSince(storage: string): number {
    return this.#beginnings.get(storage) ?? 0
  }

  /** Serves exactly these versions of a custom resource from now on; `since` says that there was none before that revision. */
  serve(storage: string, versions: readonly Definition[], since?: number): void {
    if (since !== undefined) this.#beginnings.set(storage, since)
    const next = new Map([...this.#custom].filter(([, definition]) => definition.storage !== storage))
    for (const definition of versions) next.set(idOf(definition), definition)
    const gone = [...this.#custom].filter(([id, was]) => !sameObjects(was, next.get(id))).map(([id]) => id)
    this.#custom = next
    this.#all = undefined
    this.#generation++
    for (const id of gone) for (const listener of this.#removals.get(id) ?? []) listener()
  }

  /** Calls `listener` when the resource is no longer served in this version, or its objects come from elsewhere. */
  onRemoval(resource: Resource, listener: () => void): () => void {
    if (resource.builtin) return () => {}
    const id = idOf(resource)
    let listeners = this.#removals.get(id)
    if (!listeners) this.#removals.set(id, (listeners = new Set()))
    listeners.add(listener)
    return () => listeners.delete(listener)
  }
}

/** Whether a version goes on showing the same objects in the same way: if not, whoever watches must come again. */
const sameObjects = (was: Definition, now: Definition | undefined): boolean =>
  now !== undefined && was.storageVersion === now.storageVersion && equal(was.conversion, now.conversion)

const idOf = ({ group, version, plural }: Resource): string => `${group}/${version}/${plural}`
