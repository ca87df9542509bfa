/** Keeps the handlers of an ExtensionConfig known: asks its server, reports, registers. Upstream: core/reconcilers/extensionconfig, v1.14. */
import {
  type Catalog,
  ConditionOrder,
  ExtensionConfig,
  ExtensionConfigConditions,
  type ExtensionHandler,
  isPaused,
  LastDiscoveredAnnotation,
  pausedCondition,
} from '@capstan/api'
import { commitChanges, type Outcome, proceed, type ReconcileContext, requeue, wait } from '@capstan/controller'
import { type ExtensionClient, HookFailed, type HookProblem } from '@capstan/extension'
import {
  draft,
  isDeleting,
  messageOf,
  minutes,
  type NewCondition,
  type ObjectKey,
  orAbsent,
  seconds,
  setConditions,
  timestamp,
} from '@capstan/kube'
import { reportPaused } from '../report-paused.ts'
import { reportLegacyConditions } from '../legacy-status.ts'
import { deprecatedHandlers } from './admission.ts'
import { injectCABundle } from './ca-bundle.ts'
import type { FirstRound } from './first-round.ts'
import { legacyDiscovered } from './legacy-status.ts'

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
    io.extensions.release(config.metadata.name)
    io.firstRound.tried(config)
    return reportPaused(io, ExtensionConfig, config, undefined)
  }

  const found = await discover(config, io)
  const reported = await orAbsent(report(found, io))
  if (!reported) return proceed()
  if ('problem' in found) {
    // The registration it has stays, also when the server is gone: its hooks then fail instead of being left out. Of one that never
    // was there nobody knows what it has to say: whatever it selects waits for it.
    if (!wasDiscovered(reported)) io.extensions.quarantine(reported, found.problem)
    io.firstRound.tried(reported)
    return tryAgain(reported, found.problem, io)
  }
  register(reported, io)
  return requeue(LookAgain, 'looks for other handlers now and then')
}

/**
 * What core has discovered is registered as core has it: also when the server could not be reached lately, since its hooks are then
 * to fail rather than to be left out. One that core has not looked at yet, as it now is, is waited for. Upstream: it must have been
 * reached, and name its authorities itself.
 */
export async function takeOverExtensionConfig(key: ObjectKey, io: ExtensionConfigIO): Promise<Outcome> {
  const config = io.cache.peek(ExtensionConfig, key)
  if (!config || isDeleting(config)) {
    forget(key.name, io)
    return proceed()
  }
  const discovered = config.status?.conditions?.find(({ type }) => type === ExtensionConfigConditions.Discovered.type)
  const isPausedNow = isPaused(undefined, config)
  if (!isPausedNow && discovered?.observedGeneration !== config.metadata.generation) return wait('core to discover its handlers')
  // While it is paused, what is registered stays; after a restart it is what the status remembers.
  if (isPausedNow && io.firstRound.over) io.firstRound.tried(config)
  else register(config, io)
  return proceed()
}

type Found = { readonly config: ExtensionConfig } & (
  | { readonly handlers: ExtensionHandler[] }
  | { readonly problem: string; readonly code: HookProblem }
)

/** Asks the server, with the authorities to trust brought up to date first. */
async function discover(before: ExtensionConfig, { client, extensions, signal }: ExtensionConfigIO): Promise<Found> {
  let config = before
  try {
    config = await injectCABundle(client, before, signal)
    return { config, handlers: await extensions.discover(config, signal) }
  } catch (err) {
    if (signal.aborted) throw err
    // What goes wrong before anybody is asked is about the Secret of the bundle.
    return { config, problem: messageOf(err), code: err instanceof HookFailed ? err.problem : 'CABundle' }
  }
}

/** Soon at first, then every half minute: an extension that is back should not be waited for. */
function tryAgain({ status }: ExtensionConfig, problem: string, { clock, log }: ExtensionConfigIO): Outcome {
  const since = status?.conditions?.find(({ type }) => type === 'Discovered')?.lastTransitionTime
  const elapsed = clock.now() - (since === undefined ? clock.now() : Date.parse(since))
  if (elapsed < seconds(1)) log.warn('Discovery failed', { reason: problem })
  else log.debug('Discovery still fails', { reason: problem })
  return requeue(Math.min(Math.max(elapsed, seconds(1)), seconds(30)), problem)
}

/** Writes what was discovered, or that nothing was: handlers known from earlier then stay. */
async function report(found: Found, { client, clock, extensions, signal }: ExtensionConfigIO): Promise<ExtensionConfig> {
  const { Discovered, DeprecatedHooks } = ExtensionConfigConditions
  const before = found.config
  const after = draft(before)
  const status = (after.status ??= {})
  if ('handlers' in found) {
    status.handlers = found.handlers
    if (found.handlers.length === 0) delete status.handlers
    after.metadata.annotations = { ...after.metadata.annotations, [LastDiscoveredAnnotation]: timestamp(clock.now()) }
  }
  const deprecated = deprecatedHooks(after, extensions.catalog)
  const discovered =
    'handlers' in found
      ? Discovered.true('Discovered')
      : Discovered.false('NotDiscovered', `${found.code}: Error in discovery: ${found.problem}`)
  const kept = before.status?.conditions?.filter(({ type }) => type !== DeprecatedHooks.type)
  const computed = [discovered, ...(deprecated ? [deprecated] : []), pausedCondition(undefined, before)]
  status.conditions = setConditions(deprecated ? before.status?.conditions : kept, computed, {
    now: clock.now(),
    generation: before.metadata.generation,
    order: ConditionOrder,
  })
  reportLegacyConditions(after, [legacyDiscovered(discovered)], { now: clock.now() })
  const options = { conditions: [Discovered.type, DeprecatedHooks.type, 'Paused'], legacyConditions: ['Discovered'], signal }
  return commitChanges(client, ExtensionConfig, before, after, options)
}

/** Which handlers registered for a version that is deprecated. Pure. */
function deprecatedHooks(config: ExtensionConfig, catalog: Catalog): NewCondition | undefined {
  const texts = deprecatedHandlers(config, catalog)
  if (texts.length === 0) return undefined
  return ExtensionConfigConditions.DeprecatedHooks.true('DeprecatedVersionsInUse', texts.join('; '))
}

const wasDiscovered = ({ metadata, status }: ExtensionConfig): boolean =>
  status?.handlers !== undefined || metadata.annotations?.[LastDiscoveredAnnotation] !== undefined

function register(config: ExtensionConfig, { extensions, firstRound }: ExtensionConfigIO): void {
  if (firstRound.over) extensions.register(config)
  firstRound.tried(config)
  extensions.release(config.metadata.name)
}

function forget(name: string, { extensions, firstRound }: ExtensionConfigIO): void {
  if (firstRound.over) extensions.unregister(name)
  else firstRound.gone(name)
  extensions.release(name)
}
