import { seededRandom } from '@capstan/kube'
import type { ProviderName } from '@capstan/lab'
import { Command } from 'commander'
import { expect, test } from 'vitest'
import { leaderElection, type LeaderElectionFlags, withLeaderElection } from './leader-election.ts'

const parse = (args: readonly string[], providers: readonly ProviderName[] = ['core']) => {
  const command = withLeaderElection(new Command('manager').exitOverride().configureOutput({ writeErr: () => {} }))
  command.parse(args, { from: 'user' })
  return leaderElection(command.opts<LeaderElectionFlags>(), providers, seededRandom(1))
}

test('--leader-elect-shards keeps the Lease name of a single leader, and sets the number of shards', () => {
  const flags = ['--leader-elect', '--leader-elect-shards', '6']
  expect(parse(flags)).toMatchObject({ name: 'controller-leader-election-capi', shards: 6 })
  expect(parse(['--leader-elect'])).not.toHaveProperty('shards')
})

test.each<[string, string[], ProviderName[], RegExp]>([
  ['without leader election', ['--leader-elect-shards=6'], ['core'], /needs --leader-elect/],
  ['with the local provider', ['--leader-elect', '--leader-elect-shards=6'], ['core', 'local'], /needs --providers core/],
  ['no shard', ['--leader-elect', '--leader-elect-shards=0'], ['core'], /from 1 to 60/],
  ['too many', ['--leader-elect', '--leader-elect-shards=61'], ['core'], /from 1 to 60/],
])('rejects shards: %s', (_, args, providers, message) => {
  expect(() => parse(args, providers)).toThrow(message)
})
