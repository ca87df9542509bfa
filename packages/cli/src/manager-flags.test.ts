import { WatchLabel } from '@capstan/api'
import type { KubeObject } from '@capstan/kube'
import { expect, test } from 'vitest'
import { managerCommand } from './commands/manager.ts'
import { refusedManagerFlags, watchLimits } from './manager-flags.ts'
import { ended } from './test-io.ts'

/** Flags of upstream's core manager v1.14, without those of logging: core/main.go, and util/flags. */
const upstream = `
  additional-sync-machine-annotations additional-sync-machine-labels cluster-concurrency clustercache-client-burst
  clustercache-client-qps clustercache-concurrency clusterclass-concurrency clusterresourceset-concurrency
  clustertopology-concurrency contention-profiling diagnostics-address extensionconfig-concurrency feature-gates health-addr
  insecure-diagnostics kube-api-burst kube-api-qps leader-elect leader-elect-lease-duration leader-elect-renew-deadline
  leader-elect-retry-period logging-format machine-concurrency machinedeployment-concurrency machinehealthcheck-concurrency
  machinepool-concurrency machineset-concurrency machineset-preflight-checks namespace profiler-address
  remote-conditions-grace-period remote-connection-grace-period runtime-extension-client-cert-file
  runtime-extension-client-key-file skip-crd-migration-phases sync-period tls-cipher-suites tls-min-version v watch-filter
  webhook-cert-dir webhook-cert-name webhook-key-name webhook-port
`
  .trim()
  .split(/\s+/)

test("each flag of upstream's core manager is either supported or refused by name", () => {
  const known = managerCommand({} as never, () => {}).options.map(({ long }) => long!.slice(2))
  expect(upstream.filter((name) => !known.includes(name))).toEqual([])
  expect(new Set(known).size).toBe(known.length)
})

test.each(refusedManagerFlags().map(({ long }) => long!))('%s is refused by name, with the reason', async (flag) => {
  const { code, err } = await ended(['manager', `${flag}=1`])
  expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(`${flag} is not supported: `) })
})

test('-v is refused as --v is', async () => {
  expect(await ended(['manager', '-v', '4'])).toMatchObject({ code: 2, err: expect.stringContaining('use --log-level') })
})

test.each([
  ['--namespace', 'One', /expected the name of one namespace/],
  ['--namespace', 'one,two', /expected the name of one namespace/],
  ['--watch-filter', 'a/b', /expected the value of a label/],
])('%s %s is rejected', async (flag, value, why) => {
  expect(await ended(['manager', flag, value])).toMatchObject({ code: 2, err: expect.stringMatching(why) })
})

test('empty limits are none; a watch filter matches the label exactly', () => {
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
