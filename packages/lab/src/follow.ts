/** Watches Clusters, their Machines and other main kinds of a management cluster, through any client, and reports their changes as lines. */
import { Cluster, ClusterClass, ExtensionConfig, Machine, MachineDeployment, MachinePool } from '@capstan/api'
import type { Client, Clock, Kind, KubeObject, Random } from '@capstan/kube'
import { keyOf, keyText, watchObjects } from '@capstan/kube'
import type { Line } from './narrate.ts'
import { createLineFormatter } from './narrate.ts'

export interface FollowOptions {
  readonly clock: Clock
  readonly random: Random
  readonly signal: AbortSignal
  /** Called with each line about a change. A change may have several lines, or none. */
  report(line: Line): void
  /** Called with all known Clusters and Machines, after each list and each change of one of these kinds. */
  changed?(clusters: readonly Cluster[], machines: readonly Machine[]): void
}

const kinds: readonly Kind[] = [ExtensionConfig, ClusterClass, Cluster, MachineDeployment, MachinePool, Machine]

/** Reports the existing objects, and then changes until the signal aborts. Resolves after the abort. */
export async function followChanges(client: Client, { clock, random, signal, report, changed }: FollowOptions): Promise<void> {
  const linesOf = createLineFormatter(clock)
  const objectsByKind = new Map<Kind, Map<string, KubeObject>>(kinds.map((kind) => [kind, new Map()]))
  const objectsOf = <T extends KubeObject>(kind: Kind<T>) => [...objectsByKind.get(kind as Kind)!.values()] as T[]

  const follow = async (kind: Kind) => {
    const objects = objectsByKind.get(kind)!
    const update = (key: string, object: KubeObject | undefined) => {
      const previous = objects.get(key)
      if (object) objects.set(key, object)
      else objects.delete(key)
      if (previous || object) for (const line of linesOf({ kind: kind.kind, previous, object })) report(line)
    }
    for await (const event of watchObjects(client, kind, { clock, random, signal })) {
      if (event.kind === 'replaced') {
        const current = new Map(event.objects.map((object) => [keyText(keyOf(object)), object]))
        for (const key of objects.keys()) if (!current.has(key)) update(key, undefined)
        for (const [key, object] of current) update(key, object)
      } else if (event.kind === 'applied') update(keyText(keyOf(event.object)), event.object)
      else if (event.kind === 'deleted') update(keyText(keyOf(event.object)), undefined)
      if (event.kind !== 'progress' && (kind.kind === 'Cluster' || kind.kind === 'Machine'))
        changed?.(objectsOf(Cluster), objectsOf(Machine))
    }
  }
  await Promise.all(kinds.map(follow))
}
