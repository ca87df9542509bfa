import type { ReconcileContext } from '@capstan/controller'
import { type Outcome, proceed, requeue, wait } from '@capstan/controller'
import { type Client, ConfigMap, isDeleting, orAbsent } from '@capstan/kube'
import { retryOutcome, failureAt, timeText, progress, reportTerminal } from '../simulation.ts'
import { KubeadmConfigKey } from '../workload/basics.ts'
import type { ControlPlaneScope } from './scope.ts'
import { isToBeRemediated } from './status.ts'

/**
 * Reports the control plane as initialized once its API server is reachable and the simulated initialization is complete.
 * `controlPlaneInitialized` is never reset.
 */
export async function initialize(scope: ControlPlaneScope, io: ReconcileContext, workload: Client | undefined): Promise<Outcome> {
  const { controlPlane } = scope
  const status = (controlPlane.status ??= {})
  if (status.initialization?.controlPlaneInitialized) return proceed()
  // As upstream: once the control plane is reported as initialized, new Machines join the existing cluster. The replacement of the only
  // Machine would have no cluster to join.
  const [firstMachine, ...otherMachines] = scope.machines.map(({ machine }) => machine)
  if (firstMachine && otherMachines.length === 0 && (isDeleting(firstMachine) || isToBeRemediated(firstMachine)))
    return wait('the only Machine to be replaced')
  // As upstream, the ConfigMap kubeadm-config shows that the first control plane machine is ready.
  if (!workload || !(await orAbsent(workload.get(ConfigMap, KubeadmConfigKey)))) return wait('API server to be reachable')
  const now = io.clock.now()
  status.timeline ??= {}
  status.timeline.apiServerReached ??= timeText(now)
  const simulated = controlPlane.spec.simulated
  const step = progress(Date.parse(status.timeline.apiServerReached), now, {
    delay: simulated?.initializationDelay,
    failure: failureAt(simulated?.failure, 'initialization'),
  })
  if (step.state === 'running') return requeue(step.until - now, 'control plane to be initialized')
  if (step.state === 'failed') {
    reportTerminal(status, simulated?.failure)
    scope.initializationIssue = step.message
    return retryOutcome(step.retryAt, now, 'failed initialization')
  }
  status.initialization = { controlPlaneInitialized: true }
  return proceed()
}
