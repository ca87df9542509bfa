import { UpdateMachine } from '@capstan/api'
import { on, proceedNow } from '@capstan/extension'

/**
 * Start the work at the first call, and return `holdFor(seconds, progress)` until it is done: core repeats the call. The handler must not
 * wait for the end of the work.
 */
export const updateMachine = on(UpdateMachine, { name: 'update-machine' }, ({ request, log }) => {
  const { metadata, spec } = request.desired.machine
  log.info('Machine is updated', { machine: metadata.name, version: spec.version })
  return proceedNow()
})
