/** Columns of pods. Upstream: pkg/printers/internalversion, printPod, v1.36. */
import { ageText, type UnknownObject } from '@capstan/kube'
import type { PrinterColumn } from '@capstan/apiserver/kinds'
import { ageColumn, column, nameColumn, orNone, wide } from '../columns.ts'
import type { ContainerStatus, Pod } from '../schemas/types.ts'

const asPod = (object: UnknownObject): Pod => object as unknown as Pod

export const podColumns: readonly PrinterColumn[] = [
  nameColumn,
  column('Ready', (o) => summary(asPod(o)).ready),
  column('Status', (o) => summary(asPod(o)).reason),
  column('Restarts', (o, now) => restartsText(summary(asPod(o)), now)),
  ageColumn,
  wide('IP', (o) => orNone(asPod(o).status.podIPs?.[0]?.ip ?? '')),
  wide('Node', (o) => orNone(asPod(o).spec.nodeName ?? '')),
  wide('Nominated Node', (o) => orNone(asPod(o).status.nominatedNodeName ?? '')),
  wide('Readiness Gates', (o) => readinessGates(asPod(o))),
]

interface Summary {
  readonly ready: string
  readonly reason: string
  readonly restarts: number
  readonly lastRestart: string
}

function summary({ metadata, spec, status }: Pod): Summary {
  const { initContainers = [], containers = [] } = spec
  const { conditions = [], phase = '' } = status
  const sidecarNames = new Set(initContainers.filter(({ restartPolicy }) => restartPolicy === 'Always').map(({ name }) => name))
  const isSidecar = (name: string) => sidecarNames.has(name)
  let reason = status.reason ?? phase
  if (conditions.some(({ type, reason: conditionReason }) => type === 'PodScheduled' && conditionReason === 'SchedulingGated'))
    reason = 'SchedulingGated'

  const total = (containers ?? []).length + initContainers.filter(({ restartPolicy }) => restartPolicy === 'Always').length
  let ready = 0
  let restarts = { count: 0, last: '' }
  let sidecars = { count: 0, last: '' }
  let initializing = false
  for (const [index, containerStatus] of (status.initContainerStatuses ?? []).entries()) {
    restarts = addRestarts(restarts, containerStatus)
    if (isSidecar(containerStatus.name)) sidecars = addRestarts(sidecars, containerStatus)
    const { terminated, waiting } = containerStatus.state ?? {}
    if (terminated?.exitCode === 0) continue
    if (isSidecar(containerStatus.name) && containerStatus.started) {
      if (containerStatus.ready) ready++
      continue
    }
    if (terminated) reason = `Init:${terminationReason(terminated)}`
    else if (waiting?.reason && waiting.reason !== 'PodInitializing') reason = `Init:${waiting.reason}`
    else reason = `Init:${index}/${initContainers.length}`
    initializing = true
    break
  }
  if (
    !initializing ||
    conditions.some(({ type, status: conditionStatus }) => type === 'Initialized' && conditionStatus === 'True')
  ) {
    // After initialization, only the restarts of sidecars and of regular containers count.
    restarts = sidecars
    let isRunning = false
    let failure = ''
    for (const containerStatus of (status.containerStatuses ?? []).toReversed()) {
      restarts = addRestarts(restarts, containerStatus)
      const { terminated, waiting, running } = containerStatus.state ?? {}
      if (waiting?.reason) reason = waiting.reason
      else if (terminated) {
        reason = terminationReason(terminated)
        if (terminated.exitCode !== 0) failure = reason
      } else if (containerStatus.ready && running) {
        isRunning = true
        ready++
      }
    }
    if (reason === 'Completed') {
      const isReady = conditions.some(({ type, status: conditionStatus }) => type === 'Ready' && conditionStatus === 'True')
      if (isRunning && isReady) reason = 'Running'
      else if (failure !== '') reason = failure
      else if (isRunning) reason = 'NotReady'
    }
  }
  if (metadata.deletionTimestamp !== undefined) {
    if (status.reason === 'NodeLost') reason = 'Unknown'
    else if (phase !== 'Failed' && phase !== 'Succeeded') reason = 'Terminating'
  }
  return { ready: `${ready}/${total}`, reason, restarts: restarts.count, lastRestart: restarts.last }
}

const addRestarts = ({ count, last }: { count: number; last: string }, { restartCount, lastState }: ContainerStatus) => {
  const ended = lastState?.terminated?.finishedAt ?? ''
  return { count: count + restartCount, last: ended > last ? ended : last }
}

const terminationReason = ({ reason, signal, exitCode }: { reason?: string; signal?: number; exitCode: number }): string =>
  reason ?? (signal ? `Signal:${signal}` : `ExitCode:${exitCode}`)

const restartsText = ({ restarts, lastRestart }: Summary, now: number): string =>
  restarts !== 0 && lastRestart !== '' ? `${restarts} (${ageText(lastRestart, now)} ago)` : `${restarts}`

function readinessGates({ spec: { readinessGates: gates = [] }, status: { conditions = [] } }: Pod): string {
  if (gates.length === 0) return '<none>'
  const statusOf = new Map(conditions.toReversed().map(({ type, status }) => [type, status]))
  const satisfied = gates.filter(({ conditionType }) => statusOf.get(conditionType) === 'True')
  return `${satisfied.length}/${gates.length}`
}
