import { ConditionOrder, MachineHealthCheck, pausedCondition } from '@capstan/api'
import { type Outcome, proceed, reconcileObject } from '@capstan/controller'
import { getCondition, type ObjectKey } from '@capstan/kube'
import { clusterOf } from '../cluster-of.ts'
import { checkMachines } from './check-machines.ts'
import { owner } from './owner.ts'
import type { MachineHealthCheckIO, MachineHealthCheckScope } from './scope.ts'
import { OwnedConditions, OwnedLegacyConditions, reportStatus } from './status.ts'

/** Checks the Machines of one MachineHealthCheck. Safe to call at any time, any number of times. */
export const reconcileMachineHealthCheck = (key: ObjectKey, io: MachineHealthCheckIO): Promise<Outcome> =>
  reconcileObject(key, io, {
    kind: MachineHealthCheck,
    related: clusterOf,
    paused: (healthCheck, cluster) => pausedCondition(cluster, healthCheck),
    scope: (healthCheck, cluster): MachineHealthCheckScope => ({
      healthCheck,
      cluster,
      limit: undefined,
      isAnyUnhealthy: false,
      legacyProblems: [],
    }),
    phases: () => [owner, checkMachines],
    status(scope, { clock, events }, { before, errors }) {
      reportStatus(scope, clock.now())
      const { generation } = scope.healthCheck.metadata
      // Without `limit`, no Machine was checked, because the workload cluster is unreachable: the generation does not count as observed.
      if (errors.length === 0 && scope.limit && generation) scope.healthCheck.status!.observedGeneration = generation
      const { limit, isAnyUnhealthy } = scope
      const reported = getCondition(before, 'RemediationAllowed')?.message
      if (limit?.allowed === false && isAnyUnhealthy && limit.message !== reported) {
        events.event(before, 'Warning', 'RemediationRestricted', limit.message)
      }
      return proceed()
    },
    conditions: OwnedConditions,
    legacyConditions: OwnedLegacyConditions,
    order: ConditionOrder,
    observesGeneration: false,
  })
