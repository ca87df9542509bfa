import { WatchLabel } from '@capstan/api'
import { controller } from '@capstan/controller'
import { type KubeObject, seededRandom, silent, systemClock } from '@capstan/kube'
import { createProviders, memoryStores } from '@capstan/lab'
import { Command } from 'commander'
import { expect, test } from 'vitest'
import { managerCommand } from '../commands/manager.ts'
import { logLevelOf, rateOf, rejectedManagerFlags, tunedControllers, type TuningFlags, watchLimits, withTuning } from './flags.ts'
import { runToEnd } from '../test-io.ts'

/** Flags listed by --help of upstream's core manager v1.14. */
const upstreamFlagNames = `
  additional-sync-machine-annotations additional-sync-machine-labels cluster-concurrency clustercache-client-burst
  clustercache-client-qps clustercache-concurrency clusterclass-concurrency clusterresourceset-concurrency
  clustertopology-concurrency contention-profiling diagnostics-address extensionconfig-concurrency feature-gates health-addr
  insecure-diagnostics kube-api-burst kube-api-qps kubeconfig leader-elect leader-elect-lease-duration leader-elect-renew-deadline
  leader-elect-retry-period log-flush-frequency log-json-info-buffer-size log-json-split-stream log-text-info-buffer-size
  log-text-split-stream logging-format machine-concurrency machinedeployment-concurrency machinehealthcheck-concurrency
  machinepool-concurrency machineset-concurrency machineset-preflight-checks namespace profiler-address
  remote-conditions-grace-period remote-connection-grace-period runtime-extension-client-cert-file
  runtime-extension-client-key-file skip-crd-migration-phases sync-period tls-cipher-suites tls-min-version v vmodule watch-filter
  webhook-cert-dir webhook-cert-name webhook-key-name webhook-port
`
  .trim()
  .split(/\s+/)

test("each flag of upstream's core manager is either supported or rejected by name", () => {
  const flagNames = managerCommand({} as never, () => {}).options.map(({ long }) => long!.slice(2))
  expect(upstreamFlagNames.filter((name) => !flagNames.includes(name))).toEqual([])
  expect(new Set(flagNames).size).toBe(flagNames.length)
})

test.each(rejectedManagerFlags().map(({ long }) => long!))('%s is rejected by name, with the reason', async (flag) => {
  const { code, err } = await runToEnd(['manager', `${flag}=1`])
  expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(`${flag} is not supported: `) })
})

const flagsOf = (...argv: string[]): TuningFlags => {
  const command = withTuning(new Command('manager')).exitOverride()
  command.parse(argv, { from: 'user' })
  return command.opts()
}
const controllersNamed = (...names: string[]) =>
  names.map((name) => controller({ name, for: {} as never, reconcile: () => Promise.reject() }))

test('concurrency flags set the concurrency of their controllers only', () => {
  const allControllers = controllersNamed(
    'cluster',
    'machine',
    'topology/cluster',
    'clusterresourceset',
    'clusterresourcesetbinding',
    'machineset',
  )
  const flags = flagsOf('--machine-concurrency', '3', '--clustertopology-concurrency=7', '--clusterresourceset-concurrency=2')
  expect(tunedControllers(allControllers, flags).map(({ name, concurrency }) => [name, concurrency])).toEqual([
    ['cluster', undefined],
    ['machine', 3],
    ['topology/cluster', 7],
    ['clusterresourceset', 2],
    ['clusterresourcesetbinding', 2],
    ['machineset', undefined],
  ])
})

function coreProviders(gates = '') {
  const io = { clock: systemClock, random: seededRandom(1), log: silent }
  const endpoint = { host: '127.0.0.1', port: 1 }
  const { featureGates } = flagsOf('--feature-gates', gates)
  return createProviders({
    ...io,
    names: ['core'],
    client: {} as never,
    stores: memoryStores(),
    endpoint,
    gates: featureGates,
  })
}

test('each concurrency flag names an existing controller', () => {
  const providers = coreProviders()
  const flags = upstreamFlagNames.filter((name) => name.endsWith('-concurrency'))
  for (const flag of flags) {
    const tuned = tunedControllers(providers.controllers, flagsOf(`--${flag}=3`)).filter(({ concurrency }) => concurrency === 3)
    expect(tuned.length, flag).toBeGreaterThan(0)
  }
})

test('a disabled feature gate removes its controllers', () => {
  const controllersWith = (gates?: string) => coreProviders(gates).controllers.map(({ name }) => name)
  const allControllers = controllersWith()
  const ofTopologies = ['clusterclass', 'topology/cluster', 'topology/machinedeployment', 'topology/machineset']
  const without = (...names: string[]) => allControllers.filter((name) => !names.includes(name))
  expect(allControllers).toEqual(expect.arrayContaining([...ofTopologies, 'machinepool', 'extensionconfig']))
  expect(controllersWith('MachinePool=false')).toEqual(without('machinepool'))
  expect(controllersWith('ClusterTopology=false,RuntimeSDK=false')).toEqual(without(...ofTopologies, 'extensionconfig'))
  expect(controllersWith('ClusterTopology=true,MachinePool=true,RuntimeSDK=true,InPlaceUpdates=true')).toEqual(allControllers)
})

test('accepts KubeadmBootstrapFormatIgnition, AllAlpha=true and AllBeta=true without effect', () => {
  const { featureGates } = flagsOf('--feature-gates', 'KubeadmBootstrapFormatIgnition=false,AllAlpha=true,AllBeta=true')
  expect(featureGates).toEqual({})
})

test('-v 4 enables debug logs, lower values leave --log-level in effect', () => {
  expect(logLevelOf('info', flagsOf('-v', '4'))).toBe('debug')
  expect(logLevelOf('info', flagsOf('-v=4'))).toBe('debug')
  expect(logLevelOf('info', flagsOf('--v=3'))).toBe('info')
  expect(logLevelOf('error', flagsOf())).toBe('error')
})

test("limits requests when --kube-api-qps is given, with upstream's default burst", () => {
  expect(rateOf(flagsOf())).toBeUndefined()
  expect(rateOf(flagsOf('--kube-api-burst', '5'))).toBeUndefined()
  expect(rateOf(flagsOf('--kube-api-qps', '0.5'))).toEqual({ qps: 0.5, burst: 200 })
  expect(rateOf(flagsOf('--kube-api-qps=20', '--kube-api-burst=30'))).toEqual({ qps: 20, burst: 30 })
})

test.each([
  ['--machine-concurrency', '0', /from 1 to 999999/],
  ['--kube-api-qps', '-1', /a number above 0/],
  ['--kube-api-burst', '1.5', /a whole number/],
  ['--sync-period', 'often', /duration/],
  ['--feature-gates', 'Nothing=true', /there is no feature gate Nothing: expected ClusterTopology, /],
  ['--feature-gates', 'MachinePool', /expected NAME=true or NAME=false/],
  ['--feature-gates', 'AllAlpha=false', /AllAlpha=false is not supported: disable gates by name/],
  ['--feature-gates', 'PriorityQueue=false', /PriorityQueue is always enabled/],
  ['-v', 'loud', /a level from 0 to 99/],
])('%s %s is rejected', async (flag, value, expectedError) => {
  expect(await runToEnd(['manager', flag, value])).toMatchObject({ code: 2, err: expect.stringMatching(expectedError) })
})

test.each([
  ['--namespace', 'One', /expected the name of one namespace/],
  ['--namespace', 'one,two', /expected the name of one namespace/],
  ['--watch-filter', 'a/b', /expected the value of a label/],
])('%s %s is rejected', async (flag, value, expectedError) => {
  expect(await runToEnd(['manager', flag, value])).toMatchObject({ code: 2, err: expect.stringMatching(expectedError) })
})

test('empty flags do not limit watches; a watch filter matches the label exactly', () => {
  expect(watchLimits({ namespace: '', watchFilter: '' })).toEqual({})
  const { namespace, eventFilter } = watchLimits({ namespace: 'one', watchFilter: 'mine' })
  const labelled = (labels?: { [name: string]: string }) =>
    eventFilter!({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', ...(labels ? { labels } : {}) } } as KubeObject)
  expect(namespace).toBe('one')
  expect([labelled({ [WatchLabel]: 'mine' }), labelled({ [WatchLabel]: 'other' }), labelled({}), labelled()]).toEqual([
    true,
    false,
    false,
    false,
  ])
})
