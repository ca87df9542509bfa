import { UpdateMachine } from '@capstan/api'
import { on, proceedNow } from '@capstan/extension'

/**
 * Updates a Machine in place. Start the work at the first call, and return `holdFor(seconds, progress)` until it is done: core then calls
 * again. A call must not wait until the work is done.
 */
export const updateMachine = on(UpdateMachine, { name: 'update-machine' }, ({ request, log }) => {
  const { metadata, spec } = request.desired.machine
  log.info('Machine is updated', { machine: metadata.name, version: spec.version })
  return proceedNow()
})
