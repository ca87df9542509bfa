import type { Kind, UnknownObject } from '@capstan/kube'
import { legacyConditionsOf, minutes, seconds } from '@capstan/kube'
import { Cluster, ClusterClass, Machine, MachineDeployment, MachineSet } from '@capstan/api'
import { expect, test } from 'vitest'
import { applyDemo } from './manifests.ts'
import { managementEnv } from './management-env.ts'
import { scriptedRuntime } from './scripted-runtime.ts'

test('objects have the deprecated v1beta1 status, and the controllers write nothing while the Cluster is idle', async () => {
  const env = await managementEnv({ runtime: scriptedRuntime({}) })
  await applyDemo(env.client)
  await env.advance(seconds(30))

  const statusLines = async (kind: Kind<UnknownObject>): Promise<string[]> => {
    const { items } = await env.client.list(kind, { namespace: 'default' })
    const lines = items.map((object) => {
      const { conditions: _, ...counts } = (object as unknown as MachineDeployment).status?.deprecated?.v1beta1 ?? {}
      const conditions = legacyConditionsOf(object).map(({ type, status }) => `${type}=${status}`)
      return [kind.kind, ...Object.entries(counts).map(([name, count]) => `${name}=${count}`), ...conditions].join(' ')
    })
    return [...new Set(lines)]
  }
  const kinds = [ClusterClass, Cluster, MachineDeployment, MachineSet, Machine] as unknown as Kind<UnknownObject>[]
  const lines: string[] = []
  for (const kind of kinds) lines.push(...(await statusLines(kind)))
  expect(lines.join('\n')).toMatchInlineSnapshot(`
    "ClusterClass RefVersionsUpToDate=True VariablesReconciled=True
    Cluster Ready=True ControlPlaneInitialized=True ControlPlaneReady=True InfrastructureReady=True TopologyReconciled=True
    MachineDeployment updatedReplicas=1 readyReplicas=1 availableReplicas=1 unavailableReplicas=0 Ready=True Available=True MachineSetReady=True
    MachineSet fullyLabeledReplicas=1 readyReplicas=1 availableReplicas=1 Ready=True MachinesCreated=True MachinesReady=True Resized=True
    Machine Ready=True BootstrapReady=True InfrastructureReady=True NodeHealthy=True
    Machine Ready=True InfrastructureReady=True NodeHealthy=True"
  `)

  const store = await env.stores.store('management')
  const { revision } = store
  await env.advance(minutes(30))
  expect(store.revision).toBe(revision)
  await env.close()
})
