import { wait } from '@capstan/controller'
import { expect, test } from 'vitest'
import { syncReplicas } from '../machineset/replicas.ts'
import type { MachineSetScope } from '../machineset/scope.ts'
import { rollOut } from './roll-out.ts'
import type { MachineDeploymentScope } from './scope.ts'

const blank = { metadata: { name: 'md', namespace: 'default' }, spec: {} }

test('a number of replicas that nobody has filled in yet is waited for: it is no mistake', async () => {
  const deployment = { machineDeployment: blank, machineSets: [] } as unknown as MachineDeploymentScope
  expect(await rollOut(deployment, {} as never)).toEqual(wait('spec.replicas to be filled in'))
  const set = { machineSet: blank, machines: [] } as unknown as MachineSetScope
  expect(await syncReplicas(set, {} as never)).toEqual(wait('spec.replicas to be filled in'))
})
