/** Provisions a Host once the hook BeforeHostProvision allows it. */
import {
  commitChanges,
  type Controller,
  controller,
  type Index,
  type Outcome,
  type Predicate,
  proceed,
  type ReconcileContext,
  requeue,
} from '@capstan/controller'
import { HookFailed, type RuntimeClient } from '@capstan/extension'
import { draft, equal, isDeleting, keyOf, type NewCondition, type ObjectKey, seconds, setConditions } from '@capstan/kube'
import { BeforeHostProvision } from './hooks.ts'
import { Host, HostConditions } from './host.ts'

export interface HostOptions {
  /** Calls the handlers of ExtensionConfigs. In a test, it may call functions instead. */
  readonly runtime: RuntimeClient
}

export const createHostController = ({ runtime }: HostOptions): Controller =>
  controller({
    name: 'host',
    for: Host,
    when: hostMatters,
    sources: [
      {
        // When a handler is added, changed or removed, the hook may no longer block or fail: call it again at once.
        start(enqueue, { cache }) {
          runtime.onChanged?.(() => {
            for (const host of cache.byIndex(waiting, '')) enqueue(keyOf(host))
          })
        },
      },
    ],
    reconcile: (key, io) => reconcileHost(key, io, runtime),
  })

/** Ignores the controller's own status writes. Accepts changes of annotations, so that users can repeat the hook call at once. */
const hostMatters: Predicate<Host> = ({ previous, object }) => !equal(factsOf(previous), factsOf(object))

const factsOf = (host: Host | undefined) =>
  host && [host.metadata.uid, host.metadata.generation, host.metadata.annotations, host.metadata.deletionTimestamp]

const waiting: Index<Host> = {
  name: 'hosts not provisioned',
  kind: Host,
  values: ({ status }) => (status?.provisioned ? [] : ['']),
}

/** Condition and outcome of a reconcile, and the error if the hook call failed. */
interface Verdict {
  readonly condition: NewCondition
  readonly outcome: Outcome
  readonly failure?: HookFailed
}

/** Calls the hook for a Host that is neither provisioned nor being deleted, and writes the result to its status. */
async function reconcileHost(key: ObjectKey, io: ReconcileContext, runtime: RuntimeClient): Promise<Outcome> {
  const before = io.cache.peek(Host, key)
  if (!before || isDeleting(before) || before.status?.provisioned) return proceed()
  // Until discovery was attempted for every ExtensionConfig, the list of handlers may be incomplete.
  if (!runtime.ready) return requeue(seconds(1), 'extensions to be discovered')

  const { condition, outcome, failure } = await callHook(before, io.signal, runtime)
  const after = draft(before)
  const isAllowed = condition.status === 'True'
  after.status = {
    ...after.status,
    // A real provider would start to provision the machine here.
    ...(isAllowed ? { provisioned: true } : {}),
    conditions: setConditions(after.status?.conditions, [condition], {
      now: io.clock.now(),
      generation: before.metadata.generation,
      order: [condition.type],
    }),
  }
  await commitChanges(io.client, Host, before, after, { conditions: [condition.type], signal: io.signal })
  // The work queue retries after an error, with growing delays.
  if (failure) throw failure
  return outcome
}

async function callHook(host: Host, signal: AbortSignal, runtime: RuntimeClient): Promise<Verdict> {
  const { Provisioned } = HostConditions
  const { namespace = '', name } = host.metadata
  const request = { host: { namespace, name }, cores: host.spec.cores }
  try {
    const { retryAfterSeconds, message = '' } = await runtime.callAll(BeforeHostProvision, host, request, { signal })
    if (retryAfterSeconds === 0) return { condition: Provisioned.true('Provisioned'), outcome: proceed() }
    return {
      condition: Provisioned.false('Blocked', `BeforeHostProvision: ${message}`),
      outcome: requeue(seconds(retryAfterSeconds), message),
    }
  } catch (err) {
    if (!(err instanceof HookFailed)) throw err
    return { condition: Provisioned.false('HookFailed', `${err.problem}: ${err.message}`), outcome: proceed(), failure: err }
  }
}
