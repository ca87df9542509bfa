/** Calls a handler of an extension in-process: for tests of extensions. */
import type { Hook, RequestOf, ResponseOf } from '@capstan/api'
import { hookApiVersion, hookPath } from '@capstan/api'
import type { Extension } from './define-extension.ts'
import type { CallInput } from './runtime-client.ts'
import { extensionServer } from './server.ts'

/**
 * The response of the extension's handler for the hook, as core would get it. With several handlers for the hook `options.handler`
 * says which.
 *
 * @example
 * const { status, retryAfterSeconds } = await callHook(extension, BeforeClusterCreate, { cluster })
 */
export async function callHook<H extends Hook>(
  extension: Extension,
  hook: H,
  request: CallInput<H> & { settings?: { [name: string]: string } },
  options: { handler?: string } = {},
): Promise<ResponseOf<H>> {
  const handler = extension.handlers.find((one) => one.hook.name === hook.name && (options.handler ?? one.name) === one.name)
  if (!handler && !hook.singleton) throw new TypeError(`Extension ${extension.name} has no handler for ${hook.name}`)
  const body: RequestOf<Hook> = { apiVersion: hookApiVersion(hook), kind: `${hook.name}Request`, ...(request as object) }
  const url = new URL(hookPath(hook, handler?.name), 'https://extension.test')
  const response = await extensionServer(extension)(new Request(url, { method: 'POST', body: JSON.stringify(body) }))
  if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`)
  return (await response.json()) as ResponseOf<H>
}
