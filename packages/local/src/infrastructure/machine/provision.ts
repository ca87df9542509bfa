import { type Cluster, fnv32a } from '@capstan/api'
import { type Outcome, proceed, requeue, wait } from '@capstan/controller'
import { addFinalizer, type NewCondition } from '@capstan/kube'
import { type LocalMachine, LocalMachineConditions, LocalMachineFinalizer } from '../../kinds/local-machine.ts'
import { retryOutcome, failureAt, timeText, progress, reportTerminal } from '../../simulation.ts'
import type { BootInputs } from './boot.ts'

/** Result of one stage of a machine: of its provisioning, or of the registration of its Node. */
export interface Stage {
  readonly outcome: Outcome
  readonly condition: NewCondition
}

const Provisioned = LocalMachineConditions.Provisioned

/** Writes to `object`, a draft, the state that the simulated machine has at the time `now` (in milliseconds). Has no other effects. */
export function provision(object: LocalMachine, boot: BootInputs, cluster: Cluster, now: number): Stage {
  const status = (object.status ??= {})
  if (status.initialization?.provisioned) {
    addFinalizer(object, LocalMachineFinalizer)
    return { outcome: proceed(), condition: Provisioned.true('Provisioned') }
  }

  if (!cluster.status?.initialization?.infrastructureProvisioned) {
    const message = 'Waiting for Cluster status.initialization.infrastructureProvisioned to be true'
    return { outcome: wait(message), condition: Provisioned.false('WaitingForClusterInfrastructure', message) }
  }
  if (!boot.dataSecretName) {
    const message = 'Waiting for Machine spec.bootstrap.dataSecretName to be set'
    return { outcome: wait(message), condition: Provisioned.false('WaitingForBootstrapData', message) }
  }
  // Added only now, because the deletion of a machine needs no work before its provisioning begins.
  addFinalizer(object, LocalMachineFinalizer)
  status.timeline ??= {}
  status.timeline.provisioningStarted ??= timeText(now)
  const simulated = object.spec?.simulated
  const step = progress(Date.parse(status.timeline.provisioningStarted), now, {
    delay: simulated?.provisioningDelay,
    failure: failureAt(simulated?.failure, 'provisioning'),
  })
  switch (step.state) {
    case 'running':
      return {
        outcome: requeue(step.until - now, 'machine to be provisioned'),
        condition: Provisioned.false('Provisioning', 'Machine is being provisioned'),
      }
    case 'failed':
      reportTerminal(status, simulated?.failure)
      return {
        outcome: retryOutcome(step.retryAt, now, 'failed provisioning'),
        condition: Provisioned.false('ProvisioningFailed', step.message),
      }
    case 'done': {
      const { namespace, name } = object.metadata
      object.spec = { ...object.spec, providerID: object.spec?.providerID ?? `local:////${namespace}/${name}` }
      status.addresses = [
        { type: 'Hostname', address: name },
        { type: 'InternalIP', address: addressOf(`${namespace}/${name}`) },
      ]
      if (boot.failureDomain) status.failureDomain = boot.failureDomain
      status.timeline.provisioned = timeText(step.at)
      status.initialization = { provisioned: true }
      return { outcome: proceed(), condition: Provisioned.true('Provisioned') }
    }
  }
}

/** Returns a deterministic address in 10.0.0.0/8. No server listens there. */
function addressOf(text: string): string {
  const hash = fnv32a(text)
  return `10.${(hash >>> 16) & 255}.${(hash >>> 8) & 255}.${hash & 255}`
}
