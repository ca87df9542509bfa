/** Random changes that several random cases use, and functions that create behaviours of the stub providers. */
import { Cluster, Machine, MachineDeployment, MachineSet } from '@capstan/api'
import type { Kind } from '@capstan/kube'
import { reportNodesReady } from '../cases/health-check.ts'
import { clusterName } from '../objects.ts'
import { everythingReady, hostedControlPlane, noReport } from '../providers.ts'
import type { Behaviour } from '../side.ts'
import { stub } from '../stub-kinds.ts'
import { annotation, first, patchAll, type RandomChange, text } from './story.ts'

/** Returns a behaviour with a name for the step. `undefined` stands for a provider that reports nothing. */
export const reportOf = (name: string, behaviour: Behaviour | undefined): readonly [string, Behaviour] => [
  name,
  behaviour ?? noReport,
]

/** Returns a function that adds fields to the reports of a behaviour, in spec or in status. */
const withFields =
  (part: 'spec' | 'status') =>
  (behaviour: Behaviour, fields: object): Behaviour =>
  (object, objects) => {
    const report = behaviour(object, objects)
    return report && { ...report, [part]: { ...report[part], ...fields } }
  }
/** Returns a behaviour that also reports `fields` in spec. */
export const withSpec = withFields('spec')
/** Returns a behaviour that also reports `fields` in status. */
export const withStatus = withFields('status')

/** Status fields of a provider object with the condition Ready False. */
export const notReady = {
  conditions: [
    { type: 'Ready', status: 'False', reason: 'Twin', message: 'not ready', lastTransitionTime: '2026-01-01T00:00:00Z' },
  ],
}

/** Pauses or resumes the Cluster. */
export const clusterPause: RandomChange = (choose) => {
  const paused = choose(true, null)
  return [`spec.paused of the Cluster is ${paused}`, (twin) => twin.patch(Cluster, clusterName, { spec: { paused } })]
}

/** Sets or removes the finalizers of every infrastructure machine. */
export const machineFinalizers: RandomChange = (choose) => {
  const finalizers = choose(['twin.capstan.dev/hold'], null)
  return [
    `every infrastructure machine has finalizers ${text(finalizers)}`,
    (twin) => patchAll(twin, stub.machine, { metadata: { finalizers } }),
  ]
}

/** Changes that apply to every Cluster with MachineDeployments. */
export const commonChanges: readonly RandomChange[] = [
  clusterPause,
  (choose) => {
    const value = choose('', null)
    const kind = choose<Kind>(MachineDeployment, Machine)
    return [
      `every ${kind.kind} has the pause annotation ${text(value)}`,
      (twin) => patchAll(twin, kind, annotation('cluster.x-k8s.io/paused', value)),
    ]
  },
  (choose) => {
    const [name, machine] = choose(
      reportOf('ready', everythingReady.machine),
      reportOf('nothing', undefined),
      reportOf('a condition', withStatus(everythingReady.machine, notReady)),
      reportOf('a failure domain', withStatus(everythingReady.machine, { failureDomain: 'fd' })),
    )
    return [`infrastructure reports ${name}`, (twin) => twin.setReports({ machine })]
  },
  (choose) => {
    const [name, config] = choose(
      reportOf('ready', everythingReady.config),
      reportOf('nothing', undefined),
      reportOf('a condition', withStatus(everythingReady.config, notReady)),
    )
    return [`bootstrap reports ${name}`, (twin) => twin.setReports({ config })]
  },
  (choose) => {
    const [name, controlPlane] = choose(
      // Listed twice, so that it is chosen more often.
      reportOf('ready', hostedControlPlane),
      reportOf('ready', hostedControlPlane),
      reportOf('nothing', undefined),
      reportOf('a condition', withStatus(hostedControlPlane, notReady)),
    )
    return [`the control plane reports ${name}`, (twin) => twin.setReports({ controlPlane })]
  },
  () => ['a Machine is deleted', (twin) => twin.delete(Machine, first)],
  (choose) => {
    const key = choose('delete-machine', 'remediate-machine', 'skip-remediation')
    const value = choose('', null)
    return [
      `every Machine has the annotation ${key} ${text(value)}`,
      (twin) => patchAll(twin, Machine, annotation(`cluster.x-k8s.io/${key}`, value)),
    ]
  },
  (choose) => {
    const ready = choose('False', 'Unknown', 'True')
    return [`every Node reports Ready ${ready}`, (twin) => reportNodesReady(twin, ready, Infinity)]
  },
  (choose) => {
    const labels = { mine: choose('a', 'b', null), 'node.cluster.x-k8s.io/mine': choose('a', 'b', null) }
    const kind = choose<Kind>(MachineDeployment, MachineSet, Machine)
    return [
      `a user sets labels of every ${kind.kind} to ${text(labels)}`,
      (twin) => patchAll(twin, kind, { metadata: { labels } }),
    ]
  },
  (choose) => {
    const deletion = { nodeDrainTimeoutSeconds: choose(1, 2, null), nodeDeletionTimeoutSeconds: choose(1, 2, null) }
    return [
      `a user sets deletion of every Machine to ${text(deletion)}`,
      (twin) => patchAll(twin, Machine, { spec: { deletion } }),
    ]
  },
  machineFinalizers,
]
