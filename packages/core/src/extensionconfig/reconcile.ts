/**
 * Reconciles an ExtensionConfig: discovers its handlers, reports them, registers them. Upstream: core/reconcilers/extensionconfig, v1.14.
 */
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
import {
  commitChanges,
  onlyConflicts,
  type Outcome,
  proceed,
  type ReconcileContext,
  reportPaused,
  requeue,
  wait,
} from '@capstan/controller'
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
import { reportLegacyConditions } from '../legacy-status.ts'
import { deprecationWarnings } from './admission.ts'
import { injectCABundle } from './ca-bundle.ts'
import type { Warmup } from './warmup.ts'
import { legacyDiscovered } from './legacy-status.ts'
import { effectiveHandlers, unknownOverrides } from './overrides.ts'

export interface ExtensionConfigIO extends ReconcileContext {
  readonly extensions: ExtensionClient
  readonly warmup: Warmup
}

/** Time after which handlers are discovered again: a redeployed extension may have other handlers, which no event reports. */
const RediscoveryInterval = minutes(10)

/** Reconciles one ExtensionConfig. Safe to call at any time, any number of times. */
export async function reconcileExtensionConfig(key: ObjectKey, io: ExtensionConfigIO): Promise<Outcome> {
  const config = io.cache.peek(ExtensionConfig, key)
  if (!config || isDeleting(config)) {
    forget(key.name, io)
    return proceed()
  }
  if (isPaused(undefined, config) && !io.warmup.isUndiscovered(config)) {
    // The registration stays while paused.
    io.extensions.release(config.metadata.name)
    io.warmup.recordTried(config)
    return reportPaused(io, ExtensionConfig, config, pausedCondition(undefined, config), ConditionOrder)
  }

  const discovery = await discover(config, io)
  let reported: ExtensionConfig | undefined
  try {
    reported = await orAbsent(report(discovery, io))
  } catch (err) {
    if (!io.signal.aborted && !onlyConflicts(err)) keepRegistration(discovery.config, messageOf(err), io)
    throw err
  }
  if (!reported) return proceed()
  if ('problem' in discovery) {
    keepRegistration(reported, discovery.problem, io)
    return retryDiscovery(reported, discovery.problem, io)
  }
  const problem = unknownOverrides(reported, discovery.handlers)
  if (problem !== undefined) io.events.event(reported, 'Warning', 'UnknownHandlerOverride', problem)
  register(reported, io)
  return requeue(RediscoveryInterval, 'handlers are discovered again')
}

/**
 * Registers the handlers of an ExtensionConfig for which another process calls discovery. Also registers them while the extension is
 * unreachable: its hooks must fail rather than be skipped. Unless the ExtensionConfig is paused, first waits until the other process has
 * tried discovery with its current generation. Upstream registers handlers only if the extension was reached and the ExtensionConfig
 * contains a CA bundle.
 */
export async function registerDiscoveredHandlers(key: ObjectKey, io: ExtensionConfigIO): Promise<Outcome> {
  const config = io.cache.peek(ExtensionConfig, key)
  if (!config || isDeleting(config)) {
    forget(key.name, io)
    return proceed()
  }
  const discovered = config.status?.conditions?.find(({ type }) => type === ExtensionConfigConditions.Discovered.type)
  const isPausedNow = isPaused(undefined, config)
  if (!isPausedNow && discovered?.observedGeneration !== config.metadata.generation) {
    const reason = 'core to discover its handlers'
    // The warm-up includes ExtensionConfigs that the manager's event filter excludes. Their changes trigger no reconcile, so the key is
    // requeued. After the warm-up, excluded ExtensionConfigs are ignored.
    return io.warmup.isOver ? wait(reason) : requeue(seconds(2), reason)
  }
  // While paused, the registration stays; after a restart it is restored from the status.
  if (isPausedNow && io.warmup.isOver) io.warmup.recordTried(config)
  else register(config, io)
  return proceed()
}

type Discovery = { readonly config: ExtensionConfig } & (
  | { readonly handlers: ExtensionHandler[] }
  | { readonly problem: string; readonly code: HookProblem }
)

/** Updates the CA bundle, then calls discovery. */
async function discover(
  before: ExtensionConfig,
  { client, extensions, signal, withoutWorker }: ExtensionConfigIO,
): Promise<Discovery> {
  let config = before
  try {
    const injected = await injectCABundle(client, before, signal)
    config = injected
    return { config, handlers: await withoutWorker(() => extensions.discover(injected, signal)) }
  } catch (err) {
    if (signal.aborted) throw err
    // The call throws only HookFailed: any other error comes from the update of the CA bundle.
    return { config, problem: messageOf(err), code: err instanceof HookFailed ? err.problem : 'CABundle' }
  }
}

/** Retries after 1 s at first, later after up to 30 s: the delay grows with the time since the first failure. */
function retryDiscovery({ status }: ExtensionConfig, problem: string, { clock, log }: ExtensionConfigIO): Outcome {
  const since = status?.conditions?.find(({ type }) => type === 'Discovered')?.lastTransitionTime
  const elapsed = clock.now() - (since === undefined ? clock.now() : Date.parse(since))
  if (elapsed < seconds(1)) log.warn('Discovery failed', { reason: problem })
  else log.debug('Discovery still fails', { reason: problem })
  return requeue(Math.min(Math.max(elapsed, seconds(1)), seconds(30)), problem)
}

/** Writes the result of discovery. After a failure, the handlers of the last successful discovery stay in the status. */
async function report(discovery: Discovery, { client, clock, extensions, signal }: ExtensionConfigIO): Promise<ExtensionConfig> {
  const { Discovered, DeprecatedHooks } = ExtensionConfigConditions
  const before = discovery.config
  const after = draft(before)
  const status = (after.status ??= {})
  if ('handlers' in discovery) {
    status.handlers = effectiveHandlers(before, discovery.handlers)
    if (discovery.handlers.length === 0) delete status.handlers
    after.metadata.annotations = { ...after.metadata.annotations, [LastDiscoveredAnnotation]: timestamp(clock.now()) }
  }
  const deprecated = deprecatedHooksCondition(after, extensions.catalog)
  const discovered =
    'handlers' in discovery
      ? Discovered.true('Discovered')
      : Discovered.false('NotDiscovered', `${discovery.code}: Error in discovery: ${discovery.problem}`)
  const otherConditions = before.status?.conditions?.filter(({ type }) => type !== DeprecatedHooks.type)
  const computed = [discovered, ...(deprecated ? [deprecated] : []), pausedCondition(undefined, before)]
  status.conditions = setConditions(deprecated ? before.status?.conditions : otherConditions, computed, {
    now: clock.now(),
    generation: before.metadata.generation,
    order: ConditionOrder,
  })
  reportLegacyConditions(after, [legacyDiscovered(discovered)], { now: clock.now() })
  const options = { conditions: [Discovered.type, DeprecatedHooks.type, 'Paused'], legacyConditions: ['Discovered'], signal }
  return commitChanges(client, ExtensionConfig, before, after, options)
}

/** Returns the condition about handlers for deprecated hook versions. Pure. */
function deprecatedHooksCondition(config: ExtensionConfig, catalog: Catalog): NewCondition | undefined {
  const texts = deprecationWarnings(config, catalog)
  if (texts.length === 0) return undefined
  return ExtensionConfigConditions.DeprecatedHooks.true('DeprecatedVersionsInUse', texts.join('; '))
}

const wasDiscovered = ({ metadata, status }: ExtensionConfig): boolean =>
  status?.handlers !== undefined || metadata.annotations?.[LastDiscoveredAnnotation] !== undefined

/**
 * After a failure, keeps an existing registration, so that the hooks of an unreachable extension fail instead of being skipped. The hooks of
 * an extension that was never discovered are unknown: all Clusters that it selects wait for it.
 */
function keepRegistration(config: ExtensionConfig, problem: string, { extensions, warmup }: ExtensionConfigIO): void {
  if (!wasDiscovered(config)) extensions.quarantine(config, problem)
  else if (warmup.isOver) extensions.relocate(config)
  warmup.recordTried(config)
}

/** Registers the handlers of the status. During the warm-up, only records them: the end of the warm-up registers all of them. */
function register(config: ExtensionConfig, { extensions, warmup }: ExtensionConfigIO): void {
  if (warmup.isOver) extensions.register(config)
  warmup.recordDiscovered(config)
  extensions.release(config.metadata.name)
}

function forget(name: string, { extensions, warmup }: ExtensionConfigIO): void {
  if (warmup.isOver) extensions.unregister(name)
  else warmup.forget(name)
  extensions.release(name)
}
