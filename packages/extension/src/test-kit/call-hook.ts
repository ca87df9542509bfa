/** Calls a handler of an extension in-process: for tests of extensions. */
import type { Hook, ResponseOf } from '@capstan/api'
import { createCatalog, Discovery, hookCatalog, HooksGroup } from '@capstan/api'
import { type Clock, type Logger, silent, VirtualClock } from '@capstan/kube'
import { callHandler } from '../client/call.ts'
import { targetOf } from '../client/client-config.ts'
import type { Extension, Handler } from '../author/define-extension.ts'
import { checkDiscovery, defaultTimeout } from '../client/discovery.ts'
import { fixture } from './fixtures.ts'
import { HookFailed } from '../client/hook-failed.ts'
import { patchedRequest } from './patched-request.ts'
import type { CallInput } from '../client/runtime-client.ts'
import { extensionServer } from '../server/server.ts'
import { inProcess } from '../client/transport.ts'

export interface CallHookOptions {
  /** Name of the handler, if the extension has several for the hook. Default: the first of them. */
  readonly handler?: string
  /** Clock for the timeout of the call. Default: a virtual clock that does not advance, so that the call never times out. */
  readonly clock?: Clock
  readonly log?: Logger
}

/**
 * Calls the handler, or the extension's handler for the hook. As when core calls it, request and response are encoded and decoded. The
 * default request is `fixture(hook)`.
 *
 * @throws HookFailed if the handler throws (`cause` is its error), if the call times out by the clock of the options, or if core would reject
 * the response: invalid JSON, invalid fields, an unknown status, a patch that does not apply, an invalid discovery
 * @throws TypeError if the extension has no such handler
 * @example
 * const { status, retryAfterSeconds } = await callHook(extension, BeforeClusterCreate, fixture(BeforeClusterCreate))
 */
export async function callHook<H extends Hook>(
  extension: Extension | Handler,
  hook: H,
  request: CallInput<H> & { settings?: { [name: string]: string } } = fixture(hook),
  options: CallHookOptions = {},
): Promise<ResponseOf<H>> {
  const handlers = 'handlers' in extension ? extension.handlers : [extension]
  const handler = handlerFor(hook, handlers, options.handler, extension.name)
  const thrown: { err?: unknown } = {}
  const { clock = new VirtualClock(), log = silent } = options
  const server = extensionServer({ name: extension.name, handlers }, { log: keepLastError(thrown, log), clock })
  const target = targetOf({ url: 'https://extension.test' }, hook, handler?.name)
  const call = { hook, target, timeoutSeconds: handler?.timeoutSeconds || defaultTimeout, request }
  try {
    const response = await callHandler(call, { transport: inProcess(server), clock })
    assertAccepted(hook, request, response, handlers)
    return response as ResponseOf<H>
  } catch (err) {
    // A test needs the error that the handler threw; core sees only status 500.
    if (err instanceof HookFailed && thrown.err !== undefined) {
      throw new HookFailed(err.code, err.message, { cause: thrown.err, problem: err.problem })
    }
    throw err
  }
}

function handlerFor(hook: Hook, handlers: readonly Handler[], name: string | undefined, extension: string): Handler | undefined {
  if (hook.singleton) return undefined
  const handler = handlers.find(
    (handler) => handler.hook.name === hook.name && handler.hook.group === hook.group && (name ?? handler.name) === handler.name,
  )
  if (!handler)
    throw new TypeError(`Extension ${extension} has no handler for ${hook.name}${name === undefined ? '' : ` named ${name}`}`)
  return handler
}

/** Checks the response as core does, in addition to its schema. @throws HookFailed */
function assertAccepted(hook: Hook, request: object, response: Record<string, unknown>, allHandlers: readonly Handler[]): void {
  const { status, message = '' } = response as { status?: string; message?: string }
  if (status !== 'Success' && status !== 'Failure') {
    const text = `got unknown response status ${JSON.stringify(status)} with message: ${message}`
    throw new HookFailed('unknown-status', text)
  }
  if (status === 'Failure') return
  const { handlers } = response as { handlers?: NonNullable<ResponseOf<typeof Discovery>['handlers']> }
  // Hooks of other groups belong to providers. A manager that calls them has them in its catalog, so they are added here too.
  const providerHooks = new Set(allHandlers.map((one) => one.hook).filter(({ group }) => group !== HooksGroup))
  if (hook.singleton) checkDiscovery('test', handlers ?? [], createCatalog([...hookCatalog, ...providerHooks]))
  patchedRequest(hook, request, response)
}

/** Returns a logger that also stores the last `err` field that is logged at level error in `thrown.err`. */
const keepLastError = (thrown: { err?: unknown }, log: Logger): Logger => ({
  debug: (message, fields) => log.debug(message, fields),
  info: (message, fields) => log.info(message, fields),
  warn: (message, fields) => log.warn(message, fields),
  error(message, fields) {
    if (fields?.err !== undefined) thrown.err = fields.err
    log.error(message, fields)
  },
  child: (fields) => keepLastError(thrown, log.child(fields)),
})
