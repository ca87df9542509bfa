import { Machine, MachinePool } from '@capstan/api'
import type { Input } from '@capstan/kube'
import { clusterName, named } from '../objects.ts'
import { silent } from '../providers.ts'
import type { Report } from '../side.ts'
import { stub } from '../stub-kinds.ts'
import type { Case, Cases, Twin } from '../twin.ts'
import { readyCluster } from './machine.ts'

const ref = (kind: string) => ({ apiGroup: stub.group, kind, name: 'p' })

const pool = (spec: object = {}, template: object = {}, metadata: object = {}): Input<MachinePool> =>
  ({
    metadata: { name: 'p', ...metadata },
    spec: {
      clusterName,
      replicas: 1,
      template: {
        spec: {
          clusterName,
          version: 'v1.35.0',
          bootstrap: { configRef: ref('StubConfig') },
          infrastructureRef: ref('StubMachine'),
          ...template,
        },
      },
      ...spec,
    },
  }) as Input<MachinePool>

/** Status reported by the provider of the pool. */
const reported = (ids: readonly string[], more: object = {}): Report => ({
  spec: { providerIDList: ids },
  status: { ready: true, initialization: { provisioned: true }, replicas: ids.length, ...more },
})

async function created(twin: Twin, report: Report | undefined, object = pool()): Promise<void> {
  await readyCluster(twin)
  await twin.behave({ machine: () => report })
  await twin.create(stub.config, named('p', { spec: {} }))
  await twin.create(stub.machine, named('p', { spec: {} }))
  await twin.create(MachinePool, object)
  await twin.settle('created')
}

const life: Case = async (twin) => {
  await created(twin, reported([]), pool({ replicas: 0 }))
  await twin.delete(MachinePool, 'p')
  await twin.settle('deleted')
}

const late: Case = async (twin) => {
  await readyCluster(twin)
  await twin.behave({ machine: silent, config: silent })
  await twin.create(MachinePool, pool())
  await twin.settle('neither object exists')
  await twin.create(stub.config, named('p', { spec: {} }))
  await twin.create(stub.machine, named('p', { spec: {} }))
  await twin.touch(MachinePool, 'p')
  await twin.settle('neither provider reports')
}

const paused: Case = async (twin) => {
  await created(twin, reported([]), pool({ replicas: 0 }, {}, { annotations: { 'cluster.x-k8s.io/paused': '' } }))
  await twin.patch(MachinePool, 'p', { metadata: { annotations: { 'cluster.x-k8s.io/paused': null } } })
  await twin.settle('resumed')
}

const dataSecret: Case = async (twin) => {
  await readyCluster(twin)
  await twin.behave({ machine: () => reported([]) })
  await twin.create(stub.machine, named('p', { spec: {} }))
  await twin.create(MachinePool, pool({ replicas: 0 }, { bootstrap: { dataSecretName: 'mine' } }))
  await twin.settle('the user supplies the bootstrap data Secret')
}

const noCluster: Case = async (twin) => {
  await twin.create(MachinePool, pool())
  await twin.settle('the Cluster does not exist')
}

const takenBack: Case = async (twin) => {
  await created(twin, reported([]), pool({ replicas: 0 }))
  await twin.behave({ machine: () => ({ status: { ready: false, initialization: { provisioned: false } } }) })
  await twin.settle('taken back')
}

const deletedBehind: Case = async (twin) => {
  await created(twin, reported([]), pool({ replicas: 0 }))
  await twin.delete(stub.machine, 'p')
  await twin.settle('the infrastructure is deleted by another client')
}

const withMachines: Case = async (twin) => {
  await created(twin, reported([], { infrastructureMachineKind: 'StubMachine' }), pool({ replicas: 0 }))
  await twin.settle('no machine yet')
  await twin.raw('Machines of the pool', async (client) => {
    const { items } = await client.list(Machine, { namespace: twin.namespace })
    return { names: items.map(({ metadata }) => metadata.name) }
  })
  await twin.settle('listed')
}

const replicasManaged: Case = async (twin) => {
  const annotations = { 'cluster.x-k8s.io/replicas-managed-by': 'provider' }
  await created(twin, reported([]), pool({ replicas: 2 }, {}, { annotations }))
}

export const machinePoolCases: Cases = {
  'machinepool-life': life,
  'machinepool-late': late,
  'machinepool-paused': paused,
  'machinepool-data-secret': dataSecret,
  'machinepool-no-cluster': noCluster,
  'machinepool-taken-back': takenBack,
  'machinepool-deleted-behind': deletedBehind,
  'machinepool-machines': withMachines,
  'machinepool-replicas-managed': replicasManaged,
}
