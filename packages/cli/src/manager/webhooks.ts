/** Serves and configures the webhooks of `capstan manager`: defaulting, validation and conversion. */
import { isIP } from 'node:net'
import { join, resolve } from 'node:path'
import {
  configureWebhooks,
  ConvertPath,
  removeWebhooks,
  replaceConversionUrls,
  webhookHandler,
  type WebhookClientConfigFor,
  withTimeout,
} from '@capstan/controller'
import { referenceVersions } from '@capstan/core'
import type { Listening, ServingCertificate, WatchedFiles } from '@capstan/extension'
import { keepOwnCertificate, listen, servingCertificateFrom, watchFiles } from '@capstan/extension'
import type { Admission, Client, Clock, DeclaredKind, Logger, ObjectKey, Reader, WebhookClientConfig } from '@capstan/kube'
import { messageOf, orAbsent, resourceName, seconds, ValidatingWebhookConfiguration } from '@capstan/kube'
import { type ProviderName, providerKinds } from '@capstan/lab'
import { InvalidArgumentError, Option, type Command } from 'commander'
import { UsageError } from '../io.ts'
import { conversionByService, webhookConfiguration } from '../manifests/names.ts'
import { portOption } from '../port-option.ts'
import { unreachableReason } from './webhook-reachability.ts'
import { keepSharedCertificate } from './webhook-secret.ts'

export interface WebhookFlags {
  /** Absent: no webhooks are served. */
  webhookPort?: number
  /** False for `--no-webhooks`. */
  webhooks?: boolean
  webhookHost: string
  webhookUrl?: string
  webhookCertDir?: string
  removeWebhooks?: boolean
  webhookCertSecret?: ObjectKey & { readonly namespace: string }
  webhookService?: ObjectKey & { readonly namespace: string }
}

/** Adds the flags of `WebhookFlags` to a command, with upstream's names where they exist. */
export const withWebhooks = (command: Command): Command =>
  command
    .addOption(portOption('--webhook-port <n>', 'port that serves webhooks; 0 selects a free port (default: no webhooks)'))
    .option('--no-webhooks', 'run without webhooks, although the API server then validates less')
    .addOption(new Option('--webhook-host <address>', 'address that webhooks are served on').default('127.0.0.1'))
    .option(
      '--remove-webhooks',
      'delete the webhook configurations of capstan manager, reset conversion to the Service of the manifests, and exit; use it before another manager takes over',
    )
    .option(
      '--webhook-url <url>',
      'URL at which the API server reaches the webhooks (default: the address and port that they are served on)',
    )
    .option(
      '--webhook-cert-dir <dir>',
      'folder with tls.crt, tls.key and ca.crt, reloaded when they change (default: certificates are generated and renewed)',
    )
    .addOption(
      new Option(
        '--webhook-cert-secret <namespace/name>',
        'Secret with the certificate that managers with the same Lease share; the first manager creates it, the leader renews it',
      ).argParser(namespacedName),
    )
    .addOption(
      new Option('--webhook-service <namespace/name>', 'Service through which the API server reaches the webhooks').argParser(
        namespacedName,
      ),
    )

function namespacedName(text: string): ObjectKey & { readonly namespace: string } {
  const [namespace = '', name = '', ...furtherParts] = text.split('/')
  if (namespace === '' || name === '' || furtherParts.length > 0) throw new InvalidArgumentError('expected NAMESPACE/NAME.')
  return { namespace, name }
}

/**
 * Whether the flags request webhooks.
 * @throws UsageError when flags contradict each other or are missing, or --webhook-url is not a URL with https
 */
export function wantsWebhooks(flags: WebhookFlags, leaderElect: boolean): boolean {
  if (flags.webhooks === false && flags.webhookPort !== undefined)
    throw new UsageError('--no-webhooks and --webhook-port exclude each other: give one')
  if (flags.webhookPort === undefined) {
    const flagWithoutPort = flags.webhookUrl ?? flags.webhookCertDir ?? flags.webhookCertSecret ?? flags.webhookService
    if (flagWithoutPort !== undefined)
      throw new UsageError('--webhook-url, --webhook-service and --webhook-cert-… need --webhook-port')
    return false
  }
  if (flags.webhookUrl !== undefined && flags.webhookService !== undefined)
    throw new UsageError('--webhook-url and --webhook-service exclude each other: give one')
  if (flags.webhookCertDir !== undefined && flags.webhookCertSecret !== undefined)
    throw new UsageError('--webhook-cert-dir and --webhook-cert-secret exclude each other: give one')
  if (flags.webhookUrl !== undefined && !/^https:\/\/[^/]/.test(flags.webhookUrl))
    throw new UsageError(`--webhook-url ${flags.webhookUrl}: must be a URL with https`)
  if (leaderElect && flags.webhookCertDir === undefined && flags.webhookCertSecret === undefined)
    throw new UsageError(
      '--leader-elect with webhooks needs --webhook-cert-dir or --webhook-cert-secret: all replicas must serve certificates of the same certificate authority',
    )
  return true
}

export interface ManagerWebhooks {
  /** The URL of --webhook-url; by default, that of the address and port that the webhooks are served on. */
  readonly url: string
  /** Conversion webhook for the CustomResourceDefinitions of kinds with several versions. */
  readonly conversion: WebhookClientConfig
  /** Configures the webhooks. Call it after the kinds were installed. */
  configure(): Promise<void>
  /**
   * Stops serving. If `configure` has succeeded and neither --webhook-service nor leader election is used, also removes the
   * webhook configurations, because without a server they block all writes of the configured kinds, and resets conversion to the
   * Service of the manifests. With --webhook-service or leader election the configurations stay, so that no write bypasses the
   * webhooks during a restart. Logs an error if the removal fails or takes more than a second.
   */
  close(): Promise<void>
}

export interface ManagerWebhooksOptions {
  readonly client: Client
  readonly providers: readonly ProviderName[]
  readonly admissions: readonly Admission[]
  /** Reader that admission and conversion use; default: the client. */
  readonly reader?: Reader
  /** Minimum TLS version of clients. */
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3'
  readonly clock: Clock
  readonly log: Logger
  /** Whether this is the only manager, that is, whether leader election is disabled. */
  readonly isAlone: boolean
  /** Whether this manager renews the shared certificate: true for the leader, and without leader election. */
  leads(): boolean
  /** Installs the CRDs with new certificate authorities for conversion. */
  reinstall(conversion: WebhookClientConfig): Promise<void>
}

/**
 * Removes the webhook configurations of these providers, because the API server rejects writes of the providers' kinds while
 * configurations exist that no manager serves. Resets the conversion of a CRD to the Service of the manifests if its conversion
 * webhook has a URL that `isOurs` accepts (default: any URL).
 */
export async function removeManagerWebhooks(
  client: Client,
  providers: readonly ProviderName[],
  isOurs: (url: string) => boolean = () => true,
): Promise<void> {
  await Promise.all(providers.map((provider) => removeWebhooks(client, webhookConfiguration(provider))))
  await Promise.all(
    providers.map((provider) =>
      replaceConversionUrls(client, providerKinds[provider], { isOurs, by: conversionByService(provider) }),
    ),
  )
}

/** Time limit for the removal of configurations, so that a slow API server does not delay the stop. */
const RemovalTimeLimit = seconds(1)

/**
 * Removes the webhook configurations of these providers and resets conversion, if the webhooks have a URL that is unreachable, as
 * after a killed process. Configurations with a Service stay. A manager with webhooks does not need this, because it replaces the
 * configurations.
 */
export async function removeStaleWebhooks(client: Client, providers: readonly ProviderName[], log: Logger): Promise<void> {
  for (const provider of providers) {
    const name = webhookConfiguration(provider)
    const configuration = await orAbsent(client.get(ValidatingWebhookConfiguration, { name }))
    const problem = configuration?.webhooks?.[0] && (await unreachableReason(configuration.webhooks[0].clientConfig))
    if (problem === undefined) continue
    await removeManagerWebhooks(client, [provider])
    log.warn('Removed webhook configurations whose server is unreachable', { name, reason: problem })
  }
}

/** Starts the webhook server. @throws UsageError when the certificates of --webhook-cert-dir cannot be used */
export async function serveWebhooks(flags: WebhookFlags, options: ManagerWebhooksOptions): Promise<ManagerWebhooks> {
  const { client, providers, clock, log, reader = client } = options
  const configurations = providers.map((provider) => ({
    name: webhookConfiguration(provider),
    admissions: admissionsFor(providerKinds[provider], options.admissions),
  }))
  const handle = webhookHandler({
    kinds: providers.flatMap((provider) => providerKinds[provider]),
    admission: { of: configurations.flatMap(({ admissions }) => admissions), reader },
    apiVersionOf: referenceVersions(reader),
  })
  let listening: Listening | undefined
  let bundle = ''
  let isConfigured = false

  const url = () => (flags.webhookUrl ?? listening!.url).replace(/\/$/, '')
  const clientConfigFor: WebhookClientConfigFor = (path) => ({
    ...(flags.webhookService ? { service: { ...flags.webhookService, path, port: 443 } } : { url: `${url()}${path}` }),
    ...(bundle === '' ? {} : { caBundle: Buffer.from(bundle).toString('base64') }),
  })
  const serve = async (serving: ServingCertificate) => {
    if (listening) return listening.renew(serving)
    const { webhookHost: host, webhookPort: port = 0 } = flags
    listening = await listen(handle, { ...serving, host, port, minVersion: options.minVersion, clock, log })
  }
  const configureAll = async () => {
    for (const { name, admissions } of configurations) await configureWebhooks(client, name, admissions, clientConfigFor)
  }
  const trust = async (authorities: string) => {
    bundle = authorities
    if (!isConfigured) return
    await options.reinstall(clientConfigFor(ConvertPath))
    await configureAll()
  }

  const startServing = (): Promise<{ close(): void }> => {
    const { webhookCertSecret: secret, webhookCertDir: folder } = flags
    if (secret !== undefined) {
      const mayRenew = () => options.leads()
      return keepSharedCertificate({ client, secret, ...namesOf(flags), clock, log, mayRenew, trust, serve })
    }
    if (folder !== undefined) return serveFromFolder(resolve(folder), { trust, serve, log })
    return keepOwnCertificate({ commonName: 'capstan-webhooks', ...namesOf(flags), clock, log, trust, serve })
  }

  const certificates = await startServing()
  return {
    get url() {
      return url()
    },
    get conversion() {
      return clientConfigFor(ConvertPath)
    },
    async configure() {
      await configureAll()
      isConfigured = true
    },
    async close() {
      certificates.close()
      if (isConfigured && options.isAlone && !flags.webhookService) {
        const ownUrl = clientConfigFor(ConvertPath).url
        const remove = () => removeManagerWebhooks(client, providers, (url) => url === ownUrl)
        await withTimeout(clock, RemovalTimeLimit, remove).catch((err: unknown) =>
          log.error(
            'Cannot remove the webhook configurations of this manager and reset conversion: run capstan manager --remove-webhooks',
            {
              names: configurations.map(({ name }) => name).join(', '),
              reason: messageOf(err),
            },
          ),
        )
      }
      await listening?.close()
    },
  }
}

function admissionsFor(kinds: readonly DeclaredKind[], admissions: readonly Admission[]): Admission[] {
  const names = new Set(kinds.map(resourceName))
  return admissions.filter(({ kind }) => names.has(resourceName(kind)))
}

function namesOf({ webhookUrl, webhookHost, webhookService }: WebhookFlags): { dnsNames: string[]; ipAddresses?: string[] } {
  if (webhookService) {
    const { namespace, name } = webhookService
    return { dnsNames: [`${name}.${namespace}.svc`, `${name}.${namespace}.svc.cluster.local`] }
  }
  const host = webhookUrl === undefined ? webhookHost : new URL(webhookUrl).hostname.replace(/^\[|\]$/g, '')
  return isIP(host) === 0 ? { dnsNames: [host] } : { dnsNames: [], ipAddresses: [host] }
}

interface CertificateUser {
  trust(authorities: string): Promise<void>
  serve(serving: ServingCertificate): Promise<void> | void
  readonly log: Logger
}

/** Calls `trust` with the certificate authority in a folder, and `serve` with the certificate; also after each change of these files. */
async function serveFromFolder(folder: string, { trust, serve, log }: CertificateUser): Promise<{ close(): void }> {
  const logFailure = (err: unknown) => log.error('Cannot use certificates of webhooks', { folder, reason: messageOf(err) })
  let latest = Promise.resolve()
  const runInOrder = (act: () => Promise<void> | void) => {
    latest = latest.catch(() => {}).then(act)
    latest.catch(logFailure)
  }
  const watched: WatchedFiles[] = []
  try {
    watched.push(await watchFiles([join(folder, 'ca.crt')], ([authorities = '']) => runInOrder(() => trust(authorities)), log))
    const files = { certificate: join(folder, 'tls.crt'), key: join(folder, 'tls.key') }
    watched.push(await servingCertificateFrom(files, (serving) => runInOrder(() => serve(serving)), log))
    await latest
  } catch (err) {
    for (const watchedFile of watched) watchedFile.close()
    throw new UsageError(`cannot serve webhooks with the certificates in ${folder}: ${messageOf(err)}`)
  }
  return { close: () => watched.forEach((watchedFile) => watchedFile.close()) }
}
