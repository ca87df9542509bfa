import { Machine, MachineDrainRule } from '@capstan/api'
import { Pod } from '@capstan/kube'
import { createBudget, createDaemonSetPod, createInWorkload, deleteBudget, pod, removeEndedPods } from '../cases/drain.ts'
import { createDrainableMachine } from '../cases/machine.ts'
import { clusterName } from '../objects.ts'
import type { Case } from '../twin.ts'
import { type Choose, type RandomChange, perform, text } from './story.ts'

/** The first change is listed twice, so that it is chosen more often. */
const drainChanges: readonly RandomChange[] = [
  () => ['Pods that are being deleted end', removeEndedPods],
  () => ['Pods that are being deleted end', removeEndedPods],
  (choose) => {
    const name = choose('a', 'b', 'c')
    return [
      `a user deletes the Pod ${name}`,
      (twin) =>
        twin.inWorkload(clusterName, async (client) => {
          const { items } = await client.list(Pod, { namespace: 'default' })
          if (items.some(({ metadata }) => metadata.name === name))
            await client.delete(Pod, { namespace: 'default', name }, { gracePeriodSeconds: 0 })
        }),
    ]
  },
  (choose) => {
    const isCreated = choose(true, false)
    return [
      isCreated ? 'a PodDisruptionBudget is created' : 'the PodDisruptionBudget is deleted',
      (twin) => (isCreated ? createBudget(twin) : deleteBudget(twin)).catch(() => {}),
    ]
  },
  (choose) => {
    const annotations = {
      'machine.cluster.x-k8s.io/exclude-node-draining': choose('', null, null),
      'pre-drain.delete.hook.machine.cluster.x-k8s.io/x': choose('', null),
      'pre-terminate.delete.hook.machine.cluster.x-k8s.io/x': choose('', null),
    }
    return [`annotations of the Machine ${text(annotations)}`, (twin) => twin.patch(Machine, 'm', { metadata: { annotations } })]
  },
  (choose) => {
    const deletion = { nodeDrainTimeoutSeconds: choose(1, null, null), nodeVolumeDetachTimeoutSeconds: choose(1, null) }
    return [`spec.deletion of the Machine ${text(deletion)}`, (twin) => twin.patch(Machine, 'm', { spec: { deletion } })]
  },
  (choose) => {
    const spec = randomRule(choose)
    return [`the MachineDrainRule ${text(spec)}`, (twin) => twin.patch(MachineDrainRule, 'rule', { spec })]
  },
]

const randomRule = (choose: Choose) => {
  const behavior = choose('Drain', 'Skip', 'WaitCompleted')
  return {
    drain: { behavior, order: behavior === 'Skip' ? null : choose(-1, 1) },
    pods: [{ selector: { matchLabels: { app: choose('web', 'db') } } }],
  }
}

/** A Machine that is being deleted, with Pods on its Node and a MachineDrainRule. A change can create a PodDisruptionBudget. */
export const randomDrain =
  (choose: Choose): Case =>
  async (twin) => {
    await createDrainableMachine(twin)
    const podOf = (name: string) =>
      pod(name, {
        metadata: { labels: { app: choose('web', 'db') }, annotations: choose({}, { 'kubernetes.io/config.mirror': 'x' }, {}) },
      })
    await createInWorkload(twin, Pod, podOf('a'), podOf('b'), podOf('c'))
    if (choose(true, false)) await createDaemonSetPod(twin)
    const { drain, pods } = randomRule(choose)
    const { order, ...behavior } = drain
    await twin.create(MachineDrainRule, {
      metadata: { name: 'rule' },
      spec: { drain: order === null ? behavior : { ...behavior, order }, pods },
    } as never)
    await twin.settle('Pods run')
    await twin.delete(Machine, 'm')
    await twin.settle('the Machine is being deleted')
    await perform(twin, choose, drainChanges)
  }
