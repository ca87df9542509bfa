/**
 * Cases of topologies that cannot be reconciled, of long upgrades, and of less common fields of ClusterClasses.
 * Every case does the same with upstream's core and with Capstan's, and compares all objects after each step (`settle`).
 */
import { Cluster, ClusterClass, MachineDeployment } from '@capstan/api'
import { proceedWith } from '@capstan/extension'
import { type Client, CustomResourceDefinition, getCondition, keyOf, type KubeObject } from '@capstan/kube'
import { clusterName } from '../objects.ts'
import { noReport } from '../providers.ts'
import { stub } from '../stub-kinds.ts'
import type { Case, Cases, Twin } from '../twin.ts'
import { deny } from './machine-set.ts'
import { poolClass, poolTopology, reports } from './topology-pools.ts'
import {
  aClass,
  aCluster,
  createTemplates,
  createTopology,
  isUpgraded,
  patch,
  set,
  topology,
  toControlPlane,
  values,
  variable,
  worker,
  workers,
} from './topology.ts'

const isReconciled = reports('ReconcileSucceeded')

/** The infrastructure of a new Cluster is created, but the creation of its control plane is denied. */
const controlPlaneDenied: Case = async (twin) => {
  await twin.create(ClusterClass, aClass())
  await twin.create(Cluster, aCluster())
  await twin.settle('the templates do not exist')
  await deny(twin, { group: stub.group, resource: 'stubcontrolplanes', operation: 'CREATE' })
  await createTemplates(twin)
  await twin.touch(ClusterClass, 'quick')
  await twin.settleRetries(
    'only the infrastructure is created',
    (objects) => hasFailed(objects) && objects.some(isInfrastructure),
  )
  await twin.delete(Cluster, clusterName)
  await twin.settle('the Cluster is deleted', (objects) => !objects.some(({ kind }) => kind === 'Cluster'))
}

const hasFailed = reports('ReconcileFailed')
const isInfrastructure = ({ kind }: KubeObject): boolean => kind === stub.cluster.kind

/** The creation of the bootstrap object of new workers is denied, so that their infrastructure object, which was created first, is removed. */
const workersDenied =
  (resource: string, create: (twin: Twin) => Promise<void>): Case =>
  async (twin) => {
    await createTopology(twin, { workers: { machinePools: [poolClass()] } }, { workers: [] })
    await deny(twin, { group: stub.group, resource, operation: 'CREATE' })
    await create(twin)
    await twin.settleRetries('the workers cannot be created', hasFailed)
  }

/** The rollout of a new template fails, so that the new template is removed. */
const rolloutDenied =
  (group: string, resource: string, template: 'quick-worker' | 'quick-control-plane'): Case =>
  async (twin) => {
    await createTopology(twin)
    await deny(twin, { group, resource, operation: 'UPDATE' })
    await twin.patch(stub.machineTemplate, template, { spec: { template: { spec: { made: 'anew' } } } })
    await twin.touch(Cluster, clusterName)
    await twin.settleRetries('the rollout fails', hasFailed)
  }

const minors = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => `v1.${from + index}.0`)

/** The upgrade plan of workers contains only every third minor version, and the last version. */
const longPlan: Case = async (twin) => {
  const kubernetesVersions = minors(28, 35)
  const initial = { topology: { version: 'v1.28.0' } }
  await createTopology(twin, { spec: { kubernetesVersions } }, initial)
  await twin.setReports({ controlPlane: noReport })
  await twin.patch(Cluster, clusterName, topology({ version: 'v1.35.0' }))
  await twin.settle('the plans are published', (objects) =>
    objects.some((object) => object.kind === 'Cluster' && ((object as Cluster).status?.workers?.upgradePlan?.length ?? 0) > 1),
  )
}

const longUpgrade: Case = async (twin) => {
  const initial = { topology: { version: 'v1.28.0' } }
  await createTopology(twin, { spec: { kubernetesVersions: minors(28, 33) } }, initial)
  await twin.patch(Cluster, clusterName, topology({ version: 'v1.33.0' }))
  await twin.settle('the Cluster is upgraded', (objects) => isUpgraded('v1.33.0')(objects) && isReconciled(objects))
}

/** Messages name three objects, and count the others. */
const manyNames: Case = async (twin) => {
  const five = ['a', 'b', 'd', 'e', 'f'].map((name) => worker(name, { replicas: 0 }))
  await createTopology(twin, {}, { workers: five })
  await twin.setReports({ controlPlane: noReport })
  await twin.patch(Cluster, clusterName, topology({ version: 'v1.35.0' }))
  await twin.settle('five MachineDeployments wait for the control plane', reports('ClusterUpgrading', '(2 more)'))
  const fiveOthers = ['g', 'h', 'i', 'j', 'k'].map((name) => worker(name, { replicas: 0 }))
  await twin.patch(Cluster, clusterName, workers(...five, ...fiveOthers))
  await twin.settle('the creation of five others is deferred', reports('ClusterUpgrading', 'creation deferred'))
}

const immutable = { type: 'string', 'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'is immutable' }] }
const immutableField = { type: 'object', properties: { name: immutable, size: { type: 'integer' } } }

const immutableVariables: Case = async (twin) => {
  const spec = { variables: [variable('zone', immutable), variable('network', immutableField)] }
  const initial = values(['zone', 'a'], ['network', { name: 'n', size: 1 }])
  const overrides = (zone: string) => [worker('a', { variables: { overrides: [{ name: 'zone', value: zone }] } })]
  await createTopology(twin, { spec }, { topology: initial, workers: overrides('w') })
  const changes: readonly (readonly [name: string, change: object])[] = [
    ['the change of a variable is rejected', topology(values(['zone', 'b'], ['network', { name: 'n', size: 1 }]))],
    ['the change of a field is rejected', topology(values(['zone', 'a'], ['network', { name: 'm', size: 1 }]))],
    ['another field changes', topology(values(['zone', 'a'], ['network', { name: 'n', size: 2 }]))],
    ['the change of an override is rejected', workers(...overrides('x'))],
    ['the override is removed', workers(worker('a'))],
    ['the variable is removed', topology(values(['network', { name: 'n', size: 2 }]))],
    ['the variable is set again', topology(values(['zone', 'b']))],
  ]
  for (const [name, change] of changes) {
    await twin.patch(Cluster, clusterName, change)
    await twin.settle(name)
  }
}

const listSchema = {
  type: 'array',
  items: { type: 'object', properties: { name: { type: 'string' }, ports: { type: 'array', items: { type: 'integer' } } } },
}
/** Returns options of a ClusterClass with a patch, which sets one field for each path, to the value at this path of the variable `list`. */
const ofList = (...paths: readonly string[]) => ({
  spec: {
    variables: [variable('list', listSchema)],
    patches: [
      patch('p', toControlPlane(...paths.map((path, index) => set(`v${index}`, { valueFrom: { variable: `list${path}` } })))),
    ],
  },
})
const twoItems = values(['list', [{ name: 'a', ports: [1, 2] }, { name: 'b' }]])

const indexed: Case = async (twin) => {
  await createTopology(twin, ofList('[0]', '[1].name', '[0].ports[1]', ''), { topology: twoItems })
  await twin.settle('the values are set', isReconciled)
  await twin.patch(Cluster, clusterName, topology(values(['list', [{ name: 'c', ports: [3, 4] }, { name: 'd' }]])))
  await twin.settle('other values are set')
}

/** The patches of a new Cluster cannot be computed. */
const patchFails =
  (definitions: readonly object[], fields: object = {}): Case =>
  async (twin) => {
    await createTemplates(twin)
    const spec = { variables: [variable('list', listSchema)], patches: [patch('p', definitions, fields)] }
    await twin.create(ClusterClass, aClass({ spec }))
    await twin.settle('the class is reconciled')
    await twin.create(Cluster, aCluster({ topology: twoItems }))
    await twin.settle('the patch fails', hasFailed)
  }

const setVariable = (path: string) => toControlPlane(set('v', { valueFrom: { variable: path } }))
const setTemplate = (template: string) => toControlPlane(set('v', { valueFrom: { template } }))

/** Two definitions of a variable have different schemas. */
const conflict: Case = async (twin) => {
  const region = (schema: object) => ({ name: 'region', required: false, schema: { openAPIV3Schema: schema } })
  await twin.registerExtension()
  twin.setResponse('DiscoverVariables', () => proceedWith({ variables: [region({ type: 'string' })] } as never))
  await createTemplates(twin)
  const external = {
    generatePatchesExtension: `generate-patches.${twin.namespace}`,
    discoverVariablesExtension: `discover-variables.${twin.namespace}`,
  }
  const withVariables = (...schemas: readonly object[]) =>
    aClass({ spec: { variables: schemas.map(region), patches: [{ name: 'p', external }] } })
  await twin.create(ClusterClass, withVariables({ type: 'integer' }))
  await twin.settle('the schemas are in conflict', variablesAre('VariableDiscoveryFailed'))
  await twin.create(Cluster, aCluster())
  await twin.settle('a Cluster of the class is created', (objects) => objects.some(({ kind }) => kind === 'Cluster'))
  await twin.patch(ClusterClass, 'quick', { spec: withVariables({ type: 'string' }).spec })
  await twin.settle('the schemas are equal', variablesAre('VariablesReady'))
}

const classReports = (type: string, reason: string) => (objects: readonly KubeObject[]) =>
  objects.some((object) => object.kind === 'ClusterClass' && getCondition(object as ClusterClass, type)?.reason === reason)
const variablesAre = (reason: string) => classReports('VariablesReady', reason)

const versionedGroup = 'versions.twin.capstan.dev'

/** The kind of a template has a newer version than the reference of the class. */
const outdatedRefs: Case = async (twin) => {
  const anything = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as const
  const versionOf = (name: string) => ({
    name,
    served: true,
    storage: name === 'v1',
    schema: { openAPIV3Schema: { type: 'object' as const, properties: { spec: anything } } },
  })
  await twin.runOnBoth('create a kind of two versions', async (client) => {
    await client.create(CustomResourceDefinition, {
      metadata: { name: `stubclustertemplates.${versionedGroup}`, labels: { 'cluster.x-k8s.io/v1beta2': 'v1_v2' } },
      spec: {
        group: versionedGroup,
        names: {
          kind: 'StubClusterTemplate',
          plural: 'stubclustertemplates',
          singular: 'stubclustertemplate',
          listKind: 'StubClusterTemplateList',
        },
        scope: 'Namespaced',
        versions: [versionOf('v1'), versionOf('v2')],
      },
    } as never)
  })
  await createTemplates(twin)
  const kind = { ...stub.clusterTemplate, group: versionedGroup }
  await twin.runOnBoth('create the template', async (client) => {
    const object = { metadata: { name: 'quick', namespace: twin.namespace }, spec: { template: { spec: {} } } }
    for (let attempt = 0; ; attempt++) {
      try {
        await client.create(kind, object as never)
        return
      } catch (err) {
        if (attempt === 50) throw err
        await new Promise((resolve) => setTimeout(resolve, 200))
      }
    }
  })
  const templateRef = (version: string) => ({
    apiVersion: `${versionedGroup}/${version}`,
    kind: 'StubClusterTemplate',
    name: 'quick',
  })
  await twin.create(ClusterClass, aClass({ spec: { infrastructure: { templateRef: templateRef('v1') } } }))
  await twin.settle('the reference has the older version', classReports('RefVersionsUpToDate', 'RefVersionsNotUpToDate'))
  await twin.patch(ClusterClass, 'quick', { spec: { infrastructure: { templateRef: templateRef('v2') } } })
  await twin.settle('the reference has the newer version', classReports('RefVersionsUpToDate', 'RefVersionsUpToDate'))
}

/** A MachineDeployment is removed from the topology during its rollout, while the deletion of its old Machine is blocked. */
const removedDuringRollout: Case = async (twin) => {
  const ofA = ({ metadata }: KubeObject) => metadata.labels?.['topology.cluster.x-k8s.io/deployment-name'] === 'a'
  const setFinalizers = (finalizers: readonly string[] | null) => async (client: Client) => {
    const { items } = await client.list(stub.machine, { namespace: twin.namespace })
    const body = { metadata: { finalizers } }
    for (const machine of items.filter(ofA)) await client.patch(stub.machine, keyOf(machine), { type: 'merge', body })
  }
  await createTopology(twin, {}, { workers: [worker('a'), worker('b')] })
  await twin.runOnBoth('block the deletion of the Machine', setFinalizers(['twin.capstan.dev/hold']))
  await twin.patch(Cluster, clusterName, topology({ version: 'v1.35.0' }))
  await twin.settle('the old Machine of the first worker is being deleted', reports('ClusterUpgrading', 'c-a-'))
  await twin.patch(Cluster, clusterName, workers(worker('b')))
  await twin.settle('the topology of the first worker is removed')
  await twin.runOnBoth('allow the deletion of the Machine', setFinalizers(null))
  await twin.settle('the second worker is upgraded', reports('ReconcileSucceeded'))
}

/** A user sets the version of a MachineDeployment to a newer version than that of the topology. */
const newerWorkers: Case = async (twin) => {
  await createTopology(twin)
  await twin.patch(MachineDeployment, ([first]) => first, { spec: { template: { spec: { version: 'v1.34.5' } } } })
  await twin.settleRetries('the workers are newer than the topology', reports('ReconcileFailed', 'must be greater than v1.34.5'))
}

export const topologyFailureCases: Cases = {
  'topology-control-plane-denied': controlPlaneDenied,
  'topology-deployment-denied': workersDenied('stubconfigtemplates', (twin) =>
    twin.patch(Cluster, clusterName, workers(worker('a'))),
  ),
  'topology-pool-denied': workersDenied('stubconfigs', (twin) =>
    twin.patch(Cluster, clusterName, topology({ workers: { machinePools: [poolTopology('p')] } })),
  ),
  'topology-rollout-denied': rolloutDenied('cluster.x-k8s.io', 'machinedeployments', 'quick-worker'),
  'topology-control-plane-rollout-denied': rolloutDenied(stub.group, 'stubcontrolplanes', 'quick-control-plane'),
  'topology-plan-of-workers': longPlan,
  'topology-upgrade-five-minors': longUpgrade,
  'topology-many-names': manyNames,
  'topology-variables-immutable': immutableVariables,
  'topology-patch-indexes': indexed,
  'topology-patch-index-of-text': patchFails(setVariable('list[0].name[0]')),
  'topology-patch-no-such-field': patchFails(setVariable('list[0].nothing')),
  'topology-patch-definitions-fail': patchFails([...setVariable('list[0].nothing'), ...setTemplate('{{ index .list 5 }}')]),
  'topology-patch-template-fails': patchFails(setTemplate('{{ index .list 5 }}')),
  'topology-patch-enabled-fails': patchFails(toControlPlane(set('v', { value: 1 })), { enabledIf: '{{ index .list 5 }}' }),
  'topology-variables-conflict': conflict,
  'topology-outdated-refs': outdatedRefs,
  'topology-newer-workers': newerWorkers,
  'topology-removed-during-rollout': removedDuringRollout,
}
