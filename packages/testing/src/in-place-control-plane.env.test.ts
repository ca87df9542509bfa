/** Tests when AfterControlPlaneUpgrade is called for a Cluster whose control plane Machines an extension updates in place. */
import {
  type CanUpdateMachine,
  Cluster,
  isUpdateInProgress,
  Machine,
  MachineControlPlaneLabel,
  type RequestOf,
} from '@capstan/api'
import { resourceName, seconds } from '@capstan/kube'
import { memoryStores } from '@capstan/lab'
import { expect, test } from 'vitest'
import { createFrom } from './manifests.ts'
import { managementEnv } from './management-env.ts'
import { type HookScript, scriptedRuntime } from './scripted-runtime.ts'

const key = { namespace: 'default', name: 'demo' }
const demo = new URL('../../lab/demo/', import.meta.url)

const script: HookScript = {
  BeforeControlPlaneUpgrade: () => undefined,
  BeforeWorkersUpgrade: () => undefined,
  CanUpdateMachine({ request }) {
    const { version } = (request as unknown as RequestOf<typeof CanUpdateMachine>).desired.machine.spec
    const operations = [{ op: 'replace', path: '/spec/version', value: version }]
    return { response: { machinePatch: { patchType: 'JSONPatch', patch: btoa(JSON.stringify(operations)) } } }
  },
  UpdateMachine: ({ nth }) => (nth === 1 ? { wait: 5, message: 'installing' } : undefined),
}

test('AfterControlPlaneUpgrade is called once, after two of three control plane Machines were updated in place and one was replaced', async () => {
  const stores = memoryStores()
  const managementStore = await stores.store('management')
  /** Kubelet versions of all control plane Machines at each call, with ` updating` for a Machine whose update is in progress. */
  const versionsAtCalls: (string | undefined)[][] = []
  const runtime = scriptedRuntime({
    ...script,
    AfterControlPlaneUpgrade() {
      const machines = managementStore.list(resourceName(Machine)) as readonly Machine[]
      const members = machines.filter(({ metadata }) => metadata.labels?.[MachineControlPlaneLabel] !== undefined)
      versionsAtCalls.push(
        members.map(
          ({ metadata, status }) => `${status?.nodeInfo?.kubeletVersion}${isUpdateInProgress({ metadata }) ? ' updating' : ''}`,
        ),
      )
      return undefined
    },
  })
  const env = await managementEnv({ runtime, stores })
  const patchTopology = (topology: object) => env.client.patch(Cluster, key, { type: 'merge', body: { spec: { topology } } })
  const controlPlane = async () =>
    (await env.client.list(Machine, { namespace: 'default', labelSelector: MachineControlPlaneLabel })).items.map(
      ({ metadata }) => metadata.name,
    )
  await createFrom(env.client, new URL('class.yaml', demo))
  await createFrom(env.client, new URL('cluster.yaml', demo))
  await patchTopology({
    controlPlane: { replicas: 3 },
    workers: { machineDeployments: [{ class: 'worker', name: 'steady', replicas: 1 }] },
  })
  await env.advance(seconds(90))
  const namesBefore = await controlPlane()
  env.story()

  await patchTopology({ version: 'v1.36.1' })
  await env.advance(seconds(120))
  const lines = env.story().split('\n')
  expect(lines.filter((line) => / (CanUpdateMachine|UpdateMachine) called/.test(line)).map(withoutTime)).toEqual([
    'demo-control-plane-2: CanUpdateMachine called on scripted.test: proceed',
    'demo-control-plane-2: UpdateMachine called on scripted.test: wait 5 s (installing)',
    'demo-control-plane-2: UpdateMachine called on scripted.test: proceed',
    'demo-control-plane-3: CanUpdateMachine called on scripted.test: proceed',
    'demo-control-plane-3: UpdateMachine called on scripted.test: wait 5 s (installing)',
    'demo-control-plane-3: UpdateMachine called on scripted.test: proceed',
  ])
  expect(versionsAtCalls).toEqual([['v1.36.1', 'v1.36.1', 'v1.36.1']])
  const namesAfter = await controlPlane()
  expect(namesAfter).toHaveLength(3)
  expect(namesAfter.filter((name) => namesBefore.includes(name))).toHaveLength(2)
  await env.close()
})

const withoutTime = (line: string) => line.replace(/^ *[\d.]+ +Machine default\//, '')
