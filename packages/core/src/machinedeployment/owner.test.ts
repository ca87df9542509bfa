import { aCluster, aMachineDeployment } from '@capstan/testing'
import { expect, test } from 'vitest'
import { owner } from './owner.ts'
import type { MachineDeploymentScope } from './scope.ts'

test('a MachineDeployment gets the label and the owner reference of its Cluster, and keeps its own labels', async () => {
  const machineDeployment = aMachineDeployment({ metadata: { labels: { team: 'a' } } })
  const cluster = aCluster()
  await owner({ machineDeployment, cluster } as unknown as MachineDeploymentScope, undefined as never)
  const { labels, ownerReferences } = machineDeployment.metadata
  expect(labels).toEqual({ team: 'a', 'cluster.x-k8s.io/cluster-name': machineDeployment.spec.clusterName })
  expect(ownerReferences?.map(({ kind, name }) => `${kind} ${name}`)).toEqual([`Cluster ${cluster.metadata.name}`])
})
