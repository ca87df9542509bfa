import { wait } from '@capstan/controller'
import { expect, test } from 'vitest'
import { syncReplicas } from '../machineset/replicas.ts'
import type { MachineSetScope } from '../machineset/scope.ts'
import { reconcileRollout } from './reconcile-rollout.ts'
import type { MachineDeploymentScope } from './scope.ts'

const blank = { metadata: { name: 'md', namespace: 'default' }, spec: {} }

test('a MachineDeployment and a MachineSet wait until spec.replicas is defaulted, without an error', async () => {
  const deployment = { machineDeployment: blank, machineSets: [] } as unknown as MachineDeploymentScope
  expect(await reconcileRollout(deployment, {} as never)).toEqual(wait('spec.replicas to be defaulted'))
  const set = { machineSet: blank, machines: [] } as unknown as MachineSetScope
  expect(await syncReplicas(set, {} as never)).toEqual(wait('spec.replicas to be defaulted'))
})
