/** The webhooks of `capstan manager`: defaults, validation and conversion on API servers that do not run ours as functions. */
import { isIP } from 'node:net'
import { join, resolve } from 'node:path'
import { configureWebhooks, ConvertPath, webhookHandler, type WebhookPlace } from '@capstan/controller'
import type { Listening, ServingCertificate, WatchedFiles } from '@capstan/extension'
import { keepOwnCertificate, listen, servingCertificateFrom, watchFiles } from '@capstan/extension'
import type { Admission, Client, Clock, DeclaredKind, Logger, WebhookClientConfig } from '@capstan/kube'
import { messageOf, resourceName } from '@capstan/kube'
import { Option, type Command } from 'commander'
import { UsageError } from './io.ts'
import { portOption } from './port-option.ts'

export interface WebhookFlags {
  webhookPort?: number
  webhookHost: string
  webhookUrl?: string
  webhookCertDir?: string
}

/** Adds the flags; upstream's names where it has them. */
export const withWebhooks = (command: Command): Command =>
  command
    .addOption(portOption('--webhook-port <n>', 'port that serves webhooks; 0 takes any (default: none are served)'))
    .addOption(new Option('--webhook-host <address>', 'address that webhooks are served on').default('127.0.0.1'))
    .option('--webhook-url <url>', 'where the API server reaches them (default: the address and port that they are served on)')
    .option(
      '--webhook-cert-dir <dir>',
      'folder with tls.crt, tls.key and ca.crt, read again when they change (default: certificates are made and renewed)',
    )

/** @throws UsageError when the flags do not go together */
export function wantsWebhooks(flags: WebhookFlags, leaderElect: boolean): boolean {
  if (flags.webhookPort === undefined) {
    const lonely = flags.webhookUrl ?? flags.webhookCertDir
    if (lonely !== undefined) throw new UsageError('--webhook-url and --webhook-cert-dir need --webhook-port')
    return false
  }
  if (flags.webhookUrl !== undefined && !/^https:\/\/[^/]/.test(flags.webhookUrl))
    throw new UsageError(`--webhook-url ${flags.webhookUrl}: must be a URL with https`)
  if (leaderElect && flags.webhookCertDir === undefined)
    throw new UsageError('--leader-elect with webhooks needs --webhook-cert-dir: several managers must have one authority')
  return true
}

export interface ManagerWebhooks {
  readonly url: string
  /** For the definitions of kinds in several versions. */
  readonly conversion: WebhookClientConfig
  /** Has the API server ask from now on: once the kinds are there. */
  configure(): Promise<void>
  /** The configurations stay: nothing is let in unseen while a manager starts again. */
  close(): Promise<void>
}

export interface ManagerWebhooksOptions {
  readonly client: Client
  readonly kinds: readonly DeclaredKind[]
  readonly admissions: readonly Admission[]
  readonly clock: Clock
  readonly log: Logger
  /** Has the definitions name the authorities that sign from now on. */
  reinstall(conversion: WebhookClientConfig): Promise<void>
}

/** Under which name there are configurations for ours. */
const ConfigurationName = 'capstan-webhook-configuration'

/** @throws UsageError when the certificates cannot be used */
export async function serveWebhooks(flags: WebhookFlags, options: ManagerWebhooksOptions): Promise<ManagerWebhooks> {
  const { client, kinds, clock, log } = options
  const names = new Set(kinds.map(resourceName))
  const admissions = options.admissions.filter(({ kind }) => names.has(resourceName(kind)))
  const handle = webhookHandler({ kinds, admission: { of: admissions, reader: client } })
  let listening: Listening | undefined
  let bundle = ''
  let isConfigured = false

  const url = () => (flags.webhookUrl ?? listening!.url).replace(/\/$/, '')
  const place: WebhookPlace = (path) => ({
    url: `${url()}${path}`,
    ...(bundle === '' ? {} : { caBundle: Buffer.from(bundle).toString('base64') }),
  })
  const serve = async (serving: ServingCertificate) => {
    if (listening) return listening.renew(serving)
    const { webhookHost: host, webhookPort: port = 0 } = flags
    listening = await listen(handle, { ...serving, host, port, clock, log })
  }
  const trust = async (authorities: string) => {
    bundle = authorities
    if (!isConfigured) return
    await options.reinstall(place(ConvertPath))
    await configureWebhooks(client, ConfigurationName, admissions, place)
  }

  const certificates =
    flags.webhookCertDir === undefined
      ? await keepOwnCertificate({ commonName: 'capstan-webhooks', ...namesOf(flags), clock, log, trust, serve })
      : await certificatesIn(resolve(flags.webhookCertDir), { trust, serve, log })
  return {
    get url() {
      return url()
    },
    get conversion() {
      return place(ConvertPath)
    },
    async configure() {
      await configureWebhooks(client, ConfigurationName, admissions, place)
      isConfigured = true
    },
    async close() {
      certificates.close()
      await listening?.close()
    },
  }
}

function namesOf({ webhookUrl, webhookHost }: WebhookFlags): { dnsNames: string[] } | { ipAddresses: string[] } {
  const host = webhookUrl === undefined ? webhookHost : new URL(webhookUrl).hostname.replace(/^\[|\]$/g, '')
  return isIP(host) === 0 ? { dnsNames: [host] } : { ipAddresses: [host] }
}

interface Use {
  trust(authorities: string): Promise<void>
  serve(serving: ServingCertificate): Promise<void> | void
  readonly log: Logger
}

async function certificatesIn(folder: string, { trust, serve, log }: Use): Promise<{ close(): void }> {
  const failed = (err: unknown) => log.error('Cannot use certificates of webhooks', { folder, reason: messageOf(err) })
  let latest = Promise.resolve()
  const inTurn = (act: () => Promise<void> | void) => {
    latest = latest.catch(() => {}).then(act)
    latest.catch(failed)
  }
  const watched: WatchedFiles[] = []
  try {
    watched.push(watchFiles([join(folder, 'ca.crt')], ([authorities = '']) => inTurn(() => trust(authorities)), log))
    const files = { certificate: join(folder, 'tls.crt'), key: join(folder, 'tls.key') }
    watched.push(servingCertificateFrom(files, (serving) => inTurn(() => serve(serving)), log))
    await latest
  } catch (err) {
    for (const one of watched) one.close()
    throw new UsageError(`cannot serve webhooks with the certificates in ${folder}: ${messageOf(err)}`)
  }
  return { close: () => watched.forEach((one) => one.close()) }
}
