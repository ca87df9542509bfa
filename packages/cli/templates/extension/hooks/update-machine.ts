import { UpdateMachine } from '@capstan/api'
import { on, proceedNow } from '@capstan/extension'

/**
 * Called to update a Machine in place, and again while the response is `holdFor(seconds, progress)`. Start the work in the first call, and
 * return `proceedNow()` once it is done. A call must not wait for the work.
 */
export const updateMachine = on(UpdateMachine, { name: 'update-machine' }, ({ request, log }) => {
  const { metadata, spec } = request.desired.machine
  log.info('Machine is updated', { machine: metadata.name, version: spec.version })
  return proceedNow()
})
