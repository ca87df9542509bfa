import { MachineDeployment, MachineHealthCheck, MachineSet } from '@capstan/api'
import { healthCheck } from '../cases/health-check.ts'
import { strategy } from '../cases/machine-deployment.ts'
import { createWorkerTemplates } from '../cases/machine-set.ts'
import { createReadyCluster } from '../cases/machine.ts'
import { machineDeployment, named } from '../objects.ts'
import { hostedControlPlane } from '../providers.ts'
import { stub } from '../stub-kinds.ts'
import type { Case, Twin } from '../twin.ts'
import { commonChanges } from './common-changes.ts'
import { type Choose, first, perform, type RandomChange, text } from './story.ts'

const name = 'md'
const patchSpec = (fields: object) => (twin: Twin) => twin.patch(MachineDeployment, name, { spec: fields })

const deploymentChanges: readonly RandomChange[] = [
  (choose) => {
    const replicas = choose(0, 1, 2, 3, 4)
    return [`replicas ${replicas}`, patchSpec({ replicas })]
  },
  (choose) => {
    const replicas = choose(1, 2, 3)
    const version = choose('v1.35.0', 'v1.35.1', 'v1.35.2')
    return [`version ${version} and replicas ${replicas}`, patchSpec({ replicas, template: { spec: { version } } })]
  },
  (choose) => {
    const version = choose('v1.34.0', 'v1.35.1', 'v1.35.2', 'v1.36.0')
    return [`version ${version}`, patchSpec({ template: { spec: { version } } })]
  },
  (choose) => {
    const paused = choose(true, false)
    return [`paused ${paused}`, patchSpec({ paused })]
  },
  (choose) => {
    const rollingUpdate = {
      maxSurge: choose<number | string>(0, 1, 2, '50%'),
      maxUnavailable: choose<number | string>(0, 1, '50%'),
    }
    const rollout = choose(
      strategy('RollingUpdate', rollingUpdate),
      strategy('RollingUpdate', rollingUpdate),
      strategy('OnDelete'),
    )
    return [`strategy ${text(rollout)}`, patchSpec(rollout)]
  },
  (choose) => {
    const metadata = {
      labels: { zone: choose('a', 'b', null), 'node.cluster.x-k8s.io/zone': choose('a', 'b', null) },
      annotations: { zone: choose('a', 'b', null) },
    }
    return [`metadata of the template ${text(metadata)}`, patchSpec({ template: { metadata } })]
  },
  (choose) => {
    const fields = {
      deletion: choose(null, { nodeDrainTimeoutSeconds: choose(1, 2), nodeVolumeDetachTimeoutSeconds: choose(1, 2) }),
      readinessGates: choose(null, [{ conditionType: 'Extra' }]),
      taints: choose(null, [{ key: 'k', effect: 'NoSchedule', propagation: choose('Always', 'OnInitialization') }]),
      minReadySeconds: choose(0, 1, null),
    }
    return [`in-place fields ${text(fields)}`, patchSpec({ template: { spec: fields } })]
  },
  (choose) => {
    const order = choose('Oldest', 'Newest', null)
    const maxInFlight = choose<number | string | null>(1, '50%', null)
    return [
      `order ${order}, maxInFlight ${maxInFlight}`,
      patchSpec({ deletion: { order }, remediation: maxInFlight === null ? null : { maxInFlight } }),
    ]
  },
  (choose) => {
    const after = choose('2026-01-01T00:00:00Z', '2026-02-01T00:00:00Z', null)
    return [`rollout after ${after}`, patchSpec({ rollout: { after } })]
  },
  (choose) => {
    const template = choose('worker', 'other')
    const part = choose(
      { bootstrap: { configRef: { name: template } } },
      { infrastructureRef: { name: template } },
      { bootstrap: { configRef: { name: template } }, infrastructureRef: { name: template } },
    )
    return [`templates ${text(part)}`, patchSpec({ template: { spec: part } })]
  },
  (choose) => {
    const checks = {
      nodeStartupTimeoutSeconds: 300,
      unhealthyNodeConditions: [{ type: 'Ready', status: choose('False', 'Unknown'), timeoutSeconds: 0 }],
    }
    const unhealthyLessThanOrEqualTo = choose<number | string>(0, 1, '100%')
    const selector = { matchLabels: { deployment: name } }
    const check = healthCheck({ selector, checks, remediation: { triggerIf: { unhealthyLessThanOrEqualTo } } })
    return [`a health check ${text(check.spec)}`, (twin) => twin.create(MachineHealthCheck, check as never)]
  },
  () => ['the health check is deleted', (twin) => twin.delete(MachineHealthCheck, 'mhc')],
  () => ['a MachineSet is deleted', (twin) => twin.delete(MachineSet, first)],
]

/** Random changes of a MachineDeployment in a Cluster without a topology. */
export const randomDeployment =
  (choose: Choose): Case =>
  async (twin) => {
    await twin.setReports({ controlPlane: hostedControlPlane })
    await createReadyCluster(twin)
    await createWorkerTemplates(twin)
    for (const kind of [stub.configTemplate, stub.machineTemplate])
      await twin.create(kind, named('other', { spec: { template: { spec: { made: 'from the other template' } } } }))
    await twin.create(MachineDeployment, machineDeployment(name, { replicas: choose(1, 2, 3) }))
    await twin.settle('the MachineDeployment is created')
    // Listed twice, so that each of `deploymentChanges` is chosen twice as often as each common change.
    await perform(twin, choose, [...commonChanges, ...deploymentChanges, ...deploymentChanges])
    await twin.delete(MachineDeployment, name)
    await twin.settle('the MachineDeployment is deleted')
  }
