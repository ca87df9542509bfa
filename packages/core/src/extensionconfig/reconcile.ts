/** Keeps the handlers of an ExtensionConfig known: asks its server, reports, registers. Upstream: core/reconcilers/extensionconfig, v1.14. */
import {
  ConditionOrder,
  ExtensionConfig,
  ExtensionConfigConditions,
  type ExtensionHandler,
  isPaused,
  pausedCondition,
} from '@capstan/api'
import { commitChanges, type Outcome, proceed, type ReconcileContext, requeue } from '@capstan/controller'
import type { ExtensionClient } from '@capstan/extension'
import { draft, isDeleting, messageOf, minutes, type ObjectKey, setConditions } from '@capstan/kube'
import { reportPaused } from '../report-paused.ts'
import { injectCABundle } from './ca-bundle.ts'
import type { FirstRound } from './first-round.ts'

export interface ExtensionConfigIO extends ReconcileContext {
  readonly extensions: ExtensionClient
  readonly firstRound: FirstRound
}

/** A server may be deployed anew with other handlers, and nothing tells. */
const LookAgain = minutes(10)

/** Safe to run at any moment, any number of times. */
export async function reconcileExtensionConfig(key: ObjectKey, io: ExtensionConfigIO): Promise<Outcome> {
  const config = io.cache.peek(ExtensionConfig, key)
  if (!config || isDeleting(config)) {
    forget(key.name, io)
    return proceed()
  }
  if (isPaused(undefined, config)) {
    // What is registered stays; after a restart it is what the status remembers.
    io.firstRound.tried(config)
    return reportPaused(io, ExtensionConfig, config, undefined)
  }

  let current = config
  try {
    current = await injectCABundle(io.client, config, io.signal)
    const handlers = await io.extensions.discover(current, io.signal)
    const reported = await report(current, { handlers }, io)
    register(reported, io)
  } catch (err) {
    if (io.signal.aborted) throw err
    // The registration it has stays, also when the server is gone: its hooks then fail instead of being left out.
    io.firstRound.tried(current)
    await report(current, { problem: messageOf(err) }, io)
    throw err
  }
  return requeue(LookAgain, 'looks for other handlers now and then')
}

/** Writes what was discovered, or that nothing was: handlers known from earlier then stay. */
async function report(
  before: ExtensionConfig,
  result: { handlers: ExtensionHandler[] } | { problem: string },
  { client, clock, signal }: ExtensionConfigIO,
): Promise<ExtensionConfig> {
  const { Discovered } = ExtensionConfigConditions
  const after = draft(before)
  const status = (after.status ??= {})
  if ('handlers' in result) {
    status.handlers = result.handlers
    if (result.handlers.length === 0) delete status.handlers
  }
  const discovered =
    'handlers' in result
      ? Discovered.true('Discovered')
      : Discovered.false('NotDiscovered', `Error in discovery: ${result.problem}`)
  status.conditions = setConditions(before.status?.conditions, [discovered, pausedCondition(undefined, before)], {
    now: clock.now(),
    generation: before.metadata.generation,
    order: ConditionOrder,
  })
  return commitChanges(client, ExtensionConfig, before, after, { conditions: ['Discovered', 'Paused'], signal })
}

function register(config: ExtensionConfig, { extensions, firstRound }: ExtensionConfigIO): void {
  if (firstRound.over) extensions.register(config)
  firstRound.tried(config)
}

function forget(name: string, { extensions, firstRound }: ExtensionConfigIO): void {
  if (firstRound.over) extensions.unregister(name)
  else firstRound.gone(name)
}
