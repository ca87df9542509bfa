import { Machine, MachineDeployment, MachineHealthCheck, MachineSet } from '@capstan/api'
import { type Client, keyOf, type KubeObject, Node } from '@capstan/kube'
import { healthCheck } from '../cases/health-check.ts'
import { createOrphan, createWorkerTemplates } from '../cases/machine-set.ts'
import { createReadyCluster } from '../cases/machine.ts'
import { clusterName, machineDeployment, machineSet, named, nodeCondition } from '../objects.ts'
import { everythingReady, hostedControlPlane, noReport } from '../providers.ts'
import { stub } from '../stub-kinds.ts'
import type { Case, Twin } from '../twin.ts'
import { clusterPause, machineFinalizers, notReady, withStatus } from './common-changes.ts'
import { annotation, type Choose, patchAll, perform, type RandomChange, text } from './story.ts'
import { reportNodeStatus } from '../side.ts'

const ControlPlaneLabel = 'cluster.x-k8s.io/control-plane'

/** Prefixes of names. A change of a group affects the Machines, or the Nodes, whose names begin with the prefix. */
const groups = ['ms-', 'md-', 'lone', 'control-plane', ''] as const

const patchGroup = (twin: Twin, group: string, body: object) =>
  patchAll(twin, Machine, body, ({ metadata }) => metadata.name.startsWith(group))

/** Performs an action for each Node whose name begins with `group`. */
const forNodes =
  (group: string, act: (client: Client, node: Node) => Promise<unknown>) =>
  (twin: Twin): Promise<void> =>
    twin.inWorkload(clusterName, async (client) => {
      const { items } = await client.list(Node)
      for (const node of items) if (node.metadata.name.startsWith(group)) await act(client, node)
    })

const Paused = 'cluster.x-k8s.io/paused'
const PausedForChange = 'twin.capstan.dev/paused-for-change'
const hasAnnotation =
  (key: string) =>
  ({ metadata }: KubeObject): boolean =>
    metadata.annotations?.[key] !== undefined

/**
 * Performs a change of several Machines or Nodes while all health checks are paused. Otherwise one of the two compared cores could check the
 * Machines before the change is complete, and the result would depend on timing.
 */
const whileChecksArePaused =
  (act: (twin: Twin) => Promise<void>) =>
  async (twin: Twin): Promise<void> => {
    const pause = (value: '' | null) => ({ metadata: { annotations: { [Paused]: value, [PausedForChange]: value } } })
    await patchAll(twin, MachineHealthCheck, pause(''), (check) => !hasAnnotation(Paused)(check))
    await twin.settle('checks are paused')
    await act(twin)
    await twin.settle('the change is handled while checks are paused')
    await patchAll(twin, MachineHealthCheck, pause(null), hasAnnotation(PausedForChange))
  }

const randomSelector = (choose: Choose) =>
  choose<object>(
    { matchLabels: { 'cluster.x-k8s.io/cluster-name': clusterName }, matchExpressions: null },
    { matchLabels: { set: 'ms' }, matchExpressions: null },
    { matchLabels: { deployment: 'md' }, matchExpressions: null },
    { matchLabels: null, matchExpressions: [{ key: ControlPlaneLabel, operator: choose('Exists', 'DoesNotExist') }] },
    { matchLabels: null, matchExpressions: [{ key: 'lone', operator: 'In', values: ['yes', 'maybe'] }] },
  )

/** Returns a timeout in seconds: 0, which expires at once, or an hour, which does not expire during a case. */
const randomTimeout = (choose: Choose) => choose(0, 0, 0, 3600)

/** Returns random `spec.checks` as a merge patch, in which null removes a field. */
const randomChecks = (choose: Choose) => ({
  nodeStartupTimeoutSeconds: choose(0, 3600, null),
  unhealthyNodeConditions: choose<object[] | null>(
    null,
    [{ type: 'Ready', status: 'False', timeoutSeconds: randomTimeout(choose) }],
    [{ type: 'Ready', status: choose('False', 'Unknown'), timeoutSeconds: 0 }],
    [
      { type: 'Ready', status: 'Unknown', timeoutSeconds: randomTimeout(choose) },
      { type: 'MemoryPressure', status: 'True', timeoutSeconds: randomTimeout(choose) },
      { type: 'Missing', status: choose('True', 'Unknown'), timeoutSeconds: 0 },
    ],
  ),
  unhealthyMachineConditions: choose<object[] | null>(
    null,
    null,
    [{ type: 'NodeReady', status: choose('False', 'Unknown'), timeoutSeconds: randomTimeout(choose) }],
    [{ type: 'InfrastructureReady', status: 'False', timeoutSeconds: randomTimeout(choose) }],
    [
      { type: 'NodeHealthy', status: 'False', timeoutSeconds: randomTimeout(choose) },
      { type: 'Missing', status: 'False', timeoutSeconds: 0 },
    ],
  ),
})

const randomTrigger = (choose: Choose) =>
  choose<object | null>(
    null,
    { unhealthyLessThanOrEqualTo: choose<number | string>(0, 1, 2, '50%', '100%'), unhealthyInRange: null },
    { unhealthyLessThanOrEqualTo: null, unhealthyInRange: choose('[0-1]', '[1-2]', '[2-9]') },
  )

const templateRef = (kind: string, name: string) => ({ apiVersion: `${stub.group}/v1`, kind, name })
const randomTemplateRef = (choose: Choose) =>
  choose(
    null,
    templateRef('StubRemediationTemplate', 'r'),
    templateRef('StubRemediationTemplate', 'r'),
    templateRef('StubRemediationTemplate', 'missing'),
    templateRef('NothingTemplate', 'r'),
  )

/** Returns the value without null fields, which only a merge patch may contain. */
function withoutNull(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNull)
  if (typeof value !== 'object' || value === null) return value
  const fields = Object.entries(value).filter(([, field]) => field !== null)
  return Object.fromEntries(fields.map(([name, field]) => [name, withoutNull(field)]))
}

const createCheck = (twin: Twin, name: string, spec: object) =>
  twin.create(MachineHealthCheck, healthCheck(withoutNull(spec) as object, { name }) as never)

const checkNames = ['mhc', 'mhc', 'other'] as const

/**
 * Changes of health checks. All health checks have the same `checks`: two health checks that disagree about a Machine would write the
 * Machine's condition in turn, without end.
 */
const checkChanges: readonly RandomChange[] = [
  (choose) => {
    const checks = randomChecks(choose)
    return [`the checks ${text(checks)}`, (twin) => patchAll(twin, MachineHealthCheck, { spec: { checks } })]
  },
  (choose) => {
    const name = choose(...checkNames)
    const triggerIf = randomTrigger(choose)
    return [
      `${name} triggers if ${text(triggerIf)}`,
      (twin) => twin.patch(MachineHealthCheck, name, { spec: { remediation: { triggerIf } } }),
    ]
  },
  (choose) => {
    const name = choose(...checkNames)
    const selector = randomSelector(choose)
    return [`${name} selects ${text(selector)}`, (twin) => twin.patch(MachineHealthCheck, name, { spec: { selector } })]
  },
  (choose) => {
    const name = choose(...checkNames)
    const value = choose('', null)
    return [
      `${name} has the pause annotation ${text(value)}`,
      (twin) => twin.patch(MachineHealthCheck, name, annotation(Paused, value)),
    ]
  },
  (choose) => {
    const name = choose(...checkNames)
    return [`${name} is deleted`, (twin) => twin.delete(MachineHealthCheck, name)]
  },
  (choose) => {
    const name = choose(...checkNames)
    const spec = {
      selector: randomSelector(choose),
      checks: randomChecks(choose),
      remediation: { triggerIf: randomTrigger(choose) },
    }
    return [
      `${name} is created ${text(spec)}`,
      async (twin) => {
        await patchAll(twin, MachineHealthCheck, { spec: { checks: spec.checks } })
        await createCheck(twin, name, spec)
      },
    ]
  },
]

const machineChanges: readonly RandomChange[] = [
  (choose) => {
    const group = choose(...groups)
    const conditions = [
      nodeCondition('Ready', choose('False', 'False', 'Unknown', 'True', 'True'), { message: choose('', 'm') }),
      nodeCondition('MemoryPressure', choose('False', 'False', 'True')),
      ...['DiskPressure', 'PIDPressure'].map((type) => nodeCondition(type, 'False')),
    ]
    return [
      `Nodes ${group} report ${text(conditions.map(({ type, status }) => [type, status]))}`,
      whileChecksArePaused(forNodes(group, (client, node) => reportNodeStatus(client, node.metadata.name, { conditions }))),
    ]
  },
  (choose) => {
    const group = choose(...groups)
    return [
      `Nodes ${group} are deleted`,
      whileChecksArePaused(forNodes(group, (client, node) => client.delete(Node, keyOf(node)))),
    ]
  },
  (choose) => {
    const group = choose(...groups)
    const key = choose('remediate-machine', 'skip-remediation', 'paused')
    const value = choose('', '', null)
    return [
      `Machines ${group} have the annotation ${key} ${text(value)}`,
      whileChecksArePaused((twin) => patchGroup(twin, group, annotation(`cluster.x-k8s.io/${key}`, value))),
    ]
  },
  (choose) => {
    const [name, machine] = choose(
      ['ready', everythingReady.machine] as const,
      ['nothing', noReport] as const,
      ['a condition', withStatus(everythingReady.machine, notReady)] as const,
      ['a failure', withStatus(everythingReady.machine, { failureReason: 'Bad', failureMessage: 'no quota' })] as const,
    )
    return [`infrastructure reports ${name}`, whileChecksArePaused((twin) => twin.setReports({ machine }))]
  },
  (choose) => {
    const [name, report] = choose(
      ['ready', everythingReady.cluster] as const,
      ['a condition', withStatus(everythingReady.cluster, notReady)] as const,
    )
    return [`infrastructure of the Cluster reports ${name}`, (twin) => twin.setReports({ cluster: report })]
  },
  clusterPause,
  machineFinalizers,
  (choose) => {
    const maxInFlight = choose<number | string | null>(0, 1, '50%', null)
    return [
      `the MachineDeployment has maxInFlight ${maxInFlight}`,
      (twin) => twin.patch(MachineDeployment, 'md', { spec: { remediation: maxInFlight === null ? null : { maxInFlight } } }),
    ]
  },
  (choose) => {
    const labels = { lone: choose('yes', 'maybe', 'no') }
    return [`the stand-alone Machine has labels ${text(labels)}`, (twin) => patchGroup(twin, 'lone', { metadata: { labels } })]
  },
  (choose) => {
    const name = choose('lone', 'control-plane')
    return [`the Machine ${name} is deleted`, (twin) => twin.delete(Machine, name)]
  },
]

/** Changes of external remediation. */
const externalChanges: readonly RandomChange[] = [
  (choose) => {
    const name = choose(...checkNames)
    const ref = randomTemplateRef(choose)
    return [
      `${name} has the template ${text(ref)}`,
      (twin) => twin.patch(MachineHealthCheck, name, { spec: { remediation: { templateRef: ref } } }),
    ]
  },
  (choose) => {
    const isCreated = choose(true, false)
    return [
      `the remediation template is ${isCreated ? 'created' : 'deleted'}`,
      (twin) => (isCreated ? createTemplate(twin) : twin.delete(stub.remediationTemplate, 'r')),
    ]
  },
]

const createTemplate = (twin: Twin) =>
  twin.create(stub.remediationTemplate, named('r', { spec: { template: { spec: { how: 'x' } } } }))

async function createMachines(twin: Twin, choose: Choose): Promise<void> {
  await twin.setReports({ controlPlane: hostedControlPlane })
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineSet, machineSet('ms', { replicas: choose(1, 2) }))
  await twin.create(MachineDeployment, machineDeployment('md', { replicas: choose(1, 2) }))
  await createOrphan(twin, 'lone', { lone: 'yes' })
  await createOrphan(twin, 'control-plane', { [ControlPlaneLabel]: '' })
  const hasNode = ({ status }: Machine) => status?.nodeRef !== undefined
  await twin.settle('Machines run', (objects) => machinesOf(objects).every(hasNode))
}

const machinesOf = (objects: readonly KubeObject[]) => objects.filter((object): object is Machine => object.kind === Machine.kind)

const createRandomCheck = (twin: Twin, choose: Choose, remediation: object) =>
  createCheck(twin, 'mhc', { selector: randomSelector(choose), checks: randomChecks(choose), remediation })

/** MachineHealthChecks of Machines with and without a MachineSet. A MachineSet remediates its own Machines. */
export const randomHealthChecks =
  (choose: Choose): Case =>
  async (twin) => {
    await createMachines(twin, choose)
    await createRandomCheck(twin, choose, { triggerIf: randomTrigger(choose) })
    await twin.settle('the MachineHealthCheck is created')
    await perform(twin, choose, [...checkChanges, ...machineChanges])
  }

/** MachineHealthChecks that request remediation by creating an object from a template. */
export const randomExternalRemediation =
  (choose: Choose): Case =>
  async (twin) => {
    await createTemplate(twin)
    await createMachines(twin, choose)
    await createRandomCheck(twin, choose, {
      triggerIf: randomTrigger(choose),
      templateRef: templateRef('StubRemediationTemplate', 'r'),
    })
    await twin.settle('the MachineHealthCheck is created')
    await perform(twin, choose, [...checkChanges, ...machineChanges, ...externalChanges, ...externalChanges])
  }
