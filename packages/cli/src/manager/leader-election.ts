/** Leader election with upstream's flags and Lease. Our core manager does not start while upstream's renews its Lease. */
import { hostname } from 'node:os'
import { checkLeaseTerms, defaultLeaseTerms, holderOf, type LeaderElectionOptions } from '@capstan/controller'
import {
  type Client,
  type Clock,
  durationText,
  equal,
  isReason,
  keyOf,
  keyText,
  largest,
  Lease,
  messageOf,
  Namespace,
  type Random,
  randomUUID,
  seconds,
  sleep,
} from '@capstan/kube'
import type { ProviderName } from '@capstan/lab'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { duration } from '../commands/apiserver-flags.ts'
import { UsageError } from '../io.ts'

/**
 * Name of upstream's Lease, so that with leader election in one namespace, upstream's core manager and ours exclude each other.
 */
const CoreLease = 'controller-leader-election-capi'

/** Returns the Lease name: upstream's for managers with the core provider, otherwise one with the names of the providers. */
const leaseOf = (providers: readonly ProviderName[]): string =>
  providers.includes('core') ? CoreLease : `capstan-${[...providers].sort().join('-')}`

/** Default namespace of the Lease of upstream's core manager. */
const CoreNamespace = 'capi-system'
/** Matches holder identities of Capstan's managers. Upstream's are `<host>_<uuid>`, and names of Pods contain no underscore. */
const OurIdentity = /^capstan_[^_]*_[^_]*$/

/** Parsed flags. Durations are in milliseconds. */
export interface LeaderElectionFlags {
  leaderElect: 'true' | 'false'
  leaderElectNamespace: string
  leaderElectLeaseDuration: number
  leaderElectRenewDeadline: number
  leaderElectRetryPeriod: number
  leaderElectShards?: number
}

/**
 * Adds upstream's flags, and two of our own: the namespace of the Lease, which a manager outside a Pod cannot detect, and the number of
 * shards.
 */
export function withLeaderElection(command: Command): Command {
  const { leaseDuration, renewDeadline, retryPeriod } = defaultLeaseTerms
  const durationOption = (flag: string, description: string, milliseconds: number) =>
    new Option(`${flag} <duration>`, description).argParser(duration).default(milliseconds, durationText(milliseconds))
  return command
    .addOption(
      // Go's form `--leader-elect=false` is also accepted.
      new Option(
        '--leader-elect [bool]',
        'run the controllers only while this manager holds the Lease, so that several managers can run',
      )
        .choices(['true', 'false'])
        .preset('true')
        .default('false'),
    )
    .option('--leader-elect-namespace <namespace>', 'namespace of the Lease; created if it does not exist', CoreNamespace)
    .addOption(
      durationOption(
        '--leader-elect-lease-duration',
        'time without renewal after which another manager may take the Lease',
        leaseDuration,
      ),
    )
    .addOption(
      durationOption(
        '--leader-elect-renew-deadline',
        'time after which a leader that cannot renew its Lease stops',
        renewDeadline,
      ),
    )
    .addOption(
      durationOption('--leader-elect-retry-period', 'time between two attempts to acquire or renew the Lease', retryPeriod),
    )
    .addOption(
      new Option(
        '--leader-elect-shards <n>',
        'number of shards into which the namespaces are divided, each with its own Lease, so that several managers work at the same time; all managers need the same number',
      ).argParser(shardCount),
    )
}

/**
 * Returns the options of leader election; `undefined` when it is disabled.
 *
 * @throws UsageError when the durations are not valid terms of a Lease, or when --leader-elect-shards is given without --leader-elect or
 * with another provider than core
 */
export function leaderElection(
  flags: LeaderElectionFlags,
  providers: readonly ProviderName[],
  random: Random,
): LeaderElectionOptions | undefined {
  const { leaderElectShards: shards } = flags
  if (shards !== undefined && flags.leaderElect === 'false')
    throw new UsageError('--leader-elect-shards needs --leader-elect', 'Without Leases several managers would do the same work.')
  if (shards !== undefined && !equal(providers, ['core']))
    throw new UsageError(
      '--leader-elect-shards needs --providers core',
      'The local provider simulates machines in its own process, so another manager cannot take them over. Run it in a separate manager.',
    )
  if (flags.leaderElect === 'false') return undefined
  const terms = {
    leaseDuration: flags.leaderElectLeaseDuration,
    renewDeadline: flags.leaderElectRenewDeadline,
    retryPeriod: flags.leaderElectRetryPeriod,
  }
  try {
    checkLeaseTerms(terms)
  } catch (err) {
    throw new UsageError(
      messageOf(err),
      'see --leader-elect-lease-duration, --leader-elect-renew-deadline and --leader-elect-retry-period',
      { cause: err },
    )
  }
  const identity = `capstan_${hostname().replaceAll('_', '-')}_${randomUUID(random)}`
  return {
    namespace: flags.leaderElectNamespace,
    name: leaseOf(providers),
    identity,
    terms,
    ...(shards === undefined ? {} : { shards }),
  }
}

/** Maximum number of shards. Every process sends requests for the Lease of each shard, so more shards cause more requests. */
const MaxShards = 60

/** Parses the number of shards in the value of a flag. */
export function shardCount(text: string): number {
  if (!/^[1-9]\d?$/.test(text) || Number(text) > MaxShards)
    throw new InvalidArgumentError(`expected a whole number from 1 to ${MaxShards}.`)
  return Number(text)
}

/** Creates the namespace of the Lease if it does not exist. */
export async function ensureNamespace(client: Client, name: string, signal: AbortSignal): Promise<void> {
  try {
    await client.get(Namespace, { name }, { signal })
  } catch (err) {
    // A user without permission to read namespaces may still have permission to write Leases in this namespace.
    if (isReason(err, 'Forbidden')) return
    if (!isReason(err, 'NotFound')) throw err
    await client.create(Namespace, { metadata: { name } }, { signal }).catch((err) => {
      if (!isReason(err, 'AlreadyExists')) throw err
    })
  }
}

/**
 * Rejects a start beside upstream's core manager, because both managers would change the same objects. Upstream's manager counts as
 * active if its last renewal is more recent than the lease duration. If it only holds Leases that it renewed earlier, this function
 * waits for the longest of their durations, and rejects the start if a Lease was renewed or acquired in the meantime.
 *
 * @throws UsageError while upstream's core manager leads, in any namespace
 */
export async function rejectBesideUpstream(
  client: Client,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<void> {
  const leases = await heldByUpstream(client, signal)
  let renewing = leases.find((lease) => Math.abs(clock.now() - renewedAt(lease)) < durationOf(lease))
  if (!renewing && leases.length > 0) {
    // Waits for a renewal, because the clock of the other machine may be wrong.
    await sleep(clock, largest(leases.map(durationOf)), signal)
    const renewTimes = new Map(leases.map((lease) => [lease.metadata.uid, lease.spec?.renewTime]))
    const leasesAfterWait = await heldByUpstream(client, signal)
    renewing = leasesAfterWait.find(({ metadata, spec }) => renewTimes.get(metadata.uid) !== spec?.renewTime)
  }
  if (!renewing) return
  const { namespace } = renewing.metadata
  throw new UsageError(
    `Cannot run the core controllers beside upstream's core manager: ${holderOf(renewing)} holds Lease ${keyText(keyOf(renewing))}, ` +
      `renewed ${renewing.spec?.renewTime}`,
    `stop it first: kubectl -n ${namespace} scale deployment capi-controller-manager --replicas 0`,
  )
}

async function heldByUpstream(client: Client, signal: AbortSignal): Promise<Lease[]> {
  const { items } = await client.list(Lease, { fieldSelector: `metadata.name=${CoreLease}`, signal })
  return items.filter((lease) => holderOf(lease) !== '' && !OurIdentity.test(holderOf(lease)))
}

const renewedAt = ({ spec }: Lease): number => Date.parse(spec?.renewTime ?? '') || 0
const durationOf = ({ spec }: Lease): number => seconds(spec?.leaseDurationSeconds ?? 15)
