/** Creates the transport for calls to extensions. The flags of its client certificate have upstream's names. */
import type { HookTransport } from '@capstan/extension'
import { httpsHookTransport, presentFrom } from '@capstan/extension'
import type { Logger } from '@capstan/kube'
import type { Command } from 'commander'
import { type Io, UsageError } from './io.ts'

export interface HookClientOptions {
  runtimeExtensionClientCertFile?: string
  runtimeExtensionClientKeyFile?: string
}

/** Adds the flags of `HookClientOptions` to a command. */
export const withHookClientCertificate = (command: Command): Command =>
  command
    .option(
      '--runtime-extension-client-cert-file <file>',
      'client certificate for calls to runtime extensions, PEM; reloaded when it changes',
    )
    .option('--runtime-extension-client-key-file <file>', 'private key of the client certificate, PEM')

export interface HookClient {
  readonly hookTransport: HookTransport
  close(): void
}

/**
 * Creates the transport for calls to extensions, with the proxy from the environment and the client certificate from the flags.
 *
 * @throws UsageError when only one of the two flags is given, a file cannot be read or is invalid, or certificate and key do not match
 */
export async function hookClient(options: HookClientOptions, env: Io['env'], log: Logger): Promise<HookClient> {
  const { runtimeExtensionClientCertFile: certificate, runtimeExtensionClientKeyFile: key } = options
  const hookTransport = httpsHookTransport({ env })
  if (certificate === undefined && key === undefined) return { hookTransport, close: () => hookTransport.close() }
  if (certificate === undefined || key === undefined)
    throw new UsageError('--runtime-extension-client-cert-file and --runtime-extension-client-key-file must be given together')
  try {
    const files = await presentFrom({ certificate, key }, hookTransport, log)
    return {
      hookTransport,
      close() {
        files.close()
        hookTransport.close()
      },
    }
  } catch (err) {
    throw new UsageError(`cannot use the client certificate for runtime extensions: ${(err as Error).message}`)
  }
}
