/** Helpers for tests in which several core managers divide the namespaces of one API server into shards. Each shard has a Lease. */
import { shardLease, shardOf } from '@capstan/controller'
import type { Lease } from '@capstan/kube'

/** Returns, for each of `shards` shards, the name of a namespace that belongs to the shard. */
export const namespacesOfShards = (shards: number): string[] =>
  Array.from({ length: shards }, (_, shard) => {
    for (let i = 0; ; i++) if (shardOf({ namespace: `shared-${i}` }, shards) === shard) return `shared-${i}`
  })

/**
 * Returns, for each manager that holds shards of `leaseName`, the number of these shards, the largest number first. Returns `undefined` while
 * a shard has no holder.
 */
export function sharesOf(leases: readonly Lease[], leaseName: string, shards: number): number[] | undefined {
  const names = Array.from({ length: shards }, (_, shard) => shardLease(leaseName, shard, shards))
  const holders = leases.filter(({ metadata }) => names.includes(metadata.name)).map(({ spec }) => spec?.holderIdentity)
  if (holders.length < shards || holders.some((holder) => !holder)) return undefined
  return [...new Set(holders)].map((holder) => holders.filter((other) => other === holder).length).sort((a, b) => b - a)
}
