import { appendAll } from '@capstan/kube'
import type { Client, Kind, KubeObject, ListOptions } from '@capstan/kube'

/** Lists all objects of a kind in a workload cluster that the options select, in pages: a Node may run hundreds of Pods. */
export async function listPages<T extends KubeObject>(
  client: Client,
  kind: Kind<T>,
  options: Omit<ListOptions, 'limit' | 'continue'>,
): Promise<T[]> {
  const items: T[] = []
  let next: string | undefined
  do {
    const page = await client.list(kind, { ...options, limit: PageSize, ...(next ? { continue: next } : {}) })
    appendAll(items, page.items)
    next = page.metadata.continue
  } while (next)
  return items
}

const PageSize = 100
