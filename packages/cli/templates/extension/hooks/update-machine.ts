import { UpdateMachine } from '@capstan/api'
import { on, proceedNow } from '@capstan/extension'

/**
 * Begin the work at the first call and answer `holdFor(seconds, how far it is)` until it is done: core calls again and again. An
 * answer takes no longer than any other.
 */
export const updateMachine = on(UpdateMachine, { name: 'update-machine' }, ({ request, log }) => {
  const { metadata, spec } = request.desired.machine
  log.info('Machine is updated', { machine: metadata.name, version: spec.version })
  return proceedNow()
})
