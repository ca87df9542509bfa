/** Calls a server without an ExtensionConfig, for authors who test an extension. */
import type { ClientConfig, Hook, ResponseOf } from '@capstan/api'
import { Discovery, hookApiVersion } from '@capstan/api'
import type { Clock } from '@capstan/kube'
import { callHandler } from '../client/call.ts'
import { targetOf } from '../client/client-config.ts'
import { HookFailed } from '../client/hook-failed.ts'
import type { HookTransport } from '../client/transport.ts'

export interface ServerCall {
  readonly server: ClientConfig
  /** The request without apiVersion and kind. */
  readonly request: object
  /** Name of the handler on its server. Default: the handler that the server announces for the hook. */
  readonly handler?: string
  readonly timeoutSeconds: number
  readonly transport: HookTransport
  readonly clock: Clock
  readonly signal?: AbortSignal
}

export interface ServerCallResult {
  /** Empty for Discovery. */
  readonly handler: string
  /** Duration of the call in milliseconds. */
  readonly took: number
  readonly response: { readonly status?: unknown }
}

/**
 * Calls a server and returns its response, which may have any status, such as Failure.
 * @throws HookFailed if the call fails, if the response does not match the schema of the hook, or, except for Discovery,
 *   if `handler` is absent and the server does not announce exactly one handler for this version of the hook; the signal's reason
 *   if it aborts
 */
export async function callServer(hook: Hook, call: ServerCall): Promise<ServerCallResult> {
  const { server, request, timeoutSeconds, transport, clock, signal } = call
  const context = { transport, clock, ...(signal ? { signal } : {}) }
  const handler = hook.singleton ? '' : (call.handler ?? (await announcedHandler(hook, call)))
  const started = clock.elapsed()
  const target = targetOf(server, hook, handler)
  const response = await callHandler({ hook, target, timeoutSeconds, request }, context)
  return { handler, took: clock.elapsed() - started, response }
}

async function announcedHandler(hook: Hook, { server, timeoutSeconds, transport, clock, signal }: ServerCall): Promise<string> {
  const target = targetOf(server, Discovery)
  const call = { hook: Discovery, target, timeoutSeconds, request: {} }
  const { handlers = [] } = (await callHandler(call, { transport, clock, signal })) as Partial<ResponseOf<typeof Discovery>>
  const ofHook = handlers.filter(({ requestHook }) => requestHook.hook === hook.name)
  const names = ofHook.filter(({ requestHook }) => requestHook.apiVersion === hookApiVersion(hook)).map(({ name }) => name)
  if (names.length === 1) return names[0]!
  if (names.length > 1) throw new HookFailed('not-registered', `${hook.name} has the handlers ${names.join(', ')}: name one`)
  const otherVersions = [...new Set(ofHook.map(({ requestHook }) => requestHook.apiVersion))]
  const versionText = otherVersions.length === 0 ? '' : ` of ${hookApiVersion(hook)}, but of ${otherVersions.join(', ')}`
  throw new HookFailed('not-registered', `the server has no handler for ${hook.name}${versionText}`)
}
