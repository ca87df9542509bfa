import { resolve } from 'node:path'
import { type ListenOptions, openDurable } from '@capstan/apiserver'
import { createManager, installKinds, type Manager } from '@capstan/controller'
import { createClient, systemClock, systemRandom, type WebhookClientConfig } from '@capstan/kube'
import { httpsTransport } from '@capstan/kube/node'
import type { ProviderName, Stores } from '@capstan/lab'
import { createProviders, lateDefaults, memoryStores, providerAdmission, ProviderNames } from '@capstan/lab'
import { Command, Option } from 'commander'
import { closeAll } from '../close-all.ts'
import type { Io } from '../io.ts'
import { ExitCodes, untilInterrupted } from '../io.ts'
import { hookClient, type HookClientOptions, withHookClientCertificate } from '../hook-client.ts'
import { recordHooks, type RecordOptions, withRecordHooks } from '../hook-tapes.ts'
import {
  ensureNamespace,
  leaderElection,
  type LeaderElectionFlags,
  rejectBesideUpstream,
  withLeaderElection,
} from '../manager/leader-election.ts'
import { createLogger, type LoggingFormat } from '../logger.ts'
import { type AccessFlags, managementAccess, ownPodOf, withAccess } from '../management-access.ts'
import { type EndpointFlags, serveEndpoints, tlsVersion, withEndpoints } from '../manager/endpoints.ts'
import { limitRate } from '../manager/limit-rate.ts'
import {
  logLevelOf,
  rateOf,
  rejectedManagerFlags,
  tunedControllers,
  type TuningFlags,
  type WatchFlags,
  watchLimits,
  withTuning,
  withWatchLimits,
} from '../manager/flags.ts'
import {
  removeManagerWebhooks,
  removeStaleWebhooks,
  serveWebhooks,
  wantsWebhooks,
  type WebhookFlags,
  withWebhooks,
} from '../manager/webhooks.ts'
import { webhookReader } from '../manager/webhook-reader.ts'
import { registerProcessMetrics, requestCounter } from '../manager/metrics.ts'
import type { LogLevel } from '../logger.ts'
import { awaitKinds } from '../manager/missing-kinds.ts'
import { providerNames } from '../manager/provider-names.ts'
import { loadProviderHooks, type ProviderHooksOptions, withProviderHooks } from '../provider-hooks.ts'
import { rejectUnchecked } from '../manager/server-checks.ts'
import { listenOnSamePort } from '../same-port.ts'
import { portOption } from '../port-option.ts'
import { host } from '../serve-management-cluster.ts'
import { dataOption } from '../data-option.ts'

interface Options
  extends RecordOptions,
    LeaderElectionFlags,
    HookClientOptions,
    WebhookFlags,
    ProviderHooksOptions,
    AccessFlags,
    EndpointFlags,
    WatchFlags,
    TuningFlags {
  providers: ProviderName[]
  installCrds: boolean
  data?: string
  workloadPort?: number
  workloadHost: string
  loggingFormat: LoggingFormat
  logLevel: LogLevel
}

/** `capstan manager`: runs the controllers against any API server. */
export function managerCommand(io: Io, finish: (code: number) => void): Command {
  const command = withEndpoints(
    withProviderHooks(
      withWebhooks(
        withHookClientCertificate(
          withLeaderElection(withRecordHooks(withTuning(withWatchLimits(withAccess(new Command('manager')))))),
        ),
      ),
    ),
  )
    .description('Run the controllers against any Kubernetes API server')
    .addOption(
      new Option('--providers <names>', 'providers to run, separated by commas')
        .argParser(providerNames)
        .default([...ProviderNames], ProviderNames.join(',')),
    )
    .option('--no-install-crds', 'do not install the CustomResourceDefinitions, which must exist already')
    .addOption(dataOption('folder for simulated workload clusters of the local provider (default: memory only)'))
    .addOption(
      portOption(
        '--workload-port <n>',
        'port that serves the simulated workload clusters; 0 selects a free port (default: the port in the --data folder, otherwise a free port)',
      ),
    )
    .addOption(
      new Option(
        '--workload-host <address>',
        'address that serves the simulated workload clusters, and that their kubeconfigs name',
      ).default(host),
    )
    .addOption(
      new Option(
        '--logging-format <format>',
        "format of logs: pino's JSON lines, or JSON or text like that of Kubernetes' components",
      )
        .choices(['pino', 'json', 'text'])
        .default('pino'),
    )
    .addOption(
      new Option('--log-level <level>', 'lowest level to log').choices(['debug', 'info', 'warn', 'error']).default('info'),
    )
    .action(async (options: Options) => {
      await (options.removeWebhooks ? removeConfigurations(options, io) : manage(options, io))
      finish(ExitCodes.done)
    })
  for (const option of rejectedManagerFlags()) command.addOption(option)
  return command
}

async function removeConfigurations(options: Options, io: Io): Promise<void> {
  const { access } = await managementAccess(options, io.env)
  const transport = httpsTransport(access, { clock: systemClock, random: systemRandom, userAgent: 'capstan' })
  try {
    await removeManagerWebhooks(createClient(transport), options.providers)
    io.out(`Webhook configurations of capstan manager are removed from ${access.server}`)
  } finally {
    transport.close()
  }
}

async function manage(options: Options, io: Io): Promise<void> {
  const clock = systemClock
  const random = systemRandom
  const log = createLogger(io, logLevelOf(options.logLevel, options), options.loggingFormat)
  const election = leaderElection(options, options.providers, random)
  const providerHooks = await loadProviderHooks(options)
  const admissions = providerAdmission(providerHooks, clock, options.featureGates)
  const extensionClient = await hookClient(options, io.env, log)
  const { access, isInCluster } = await managementAccess(options, io.env)
  if (isInCluster) log.info('Using the service account of this pod', { server: access.server })
  const requests = requestCounter(access.server)
  const newTransport = () => httpsTransport(access, { clock, random, userAgent: 'capstan', onResponse: requests.count })
  const transport = newTransport()
  // Webhooks read with their own transport: a write of a controller waits for the webhook, and must not block the webhook's reads.
  const webhookTransport = newTransport()
  const rate = rateOf(options)
  const client = createClient(rate ? limitRate(transport, rate, clock) : transport)
  const stores: Stores =
    options.data === undefined ? memoryStores() : await openDurable(resolve(options.data, 'db'), { clock, log })
  const recording = await recordHooks(options, clock, (problem) => log.error(problem, { file: options.recordHooks }))
  const closing: (() => Promise<void>)[] = [
    async () => extensionClient.close(),
    () => recording.close(),
    () => stores.close(),
    async () => transport.close(),
    async () => webhookTransport.close(),
  ]
  try {
    if (options.providers.includes('core')) await rejectBesideUpstream(client, { clock, signal: io.signal })
    // A pod's own namespace exists, and the pod may lack the permission to read it.
    if (election && !(isInCluster && election.namespace === access.namespace))
      await ensureNamespace(client, election.namespace, io.signal)
    let endpointFor: ListenOptions['endpointFor'] = () => undefined
    const listener = options.providers.includes('local')
      ? await listenOnSamePort(
          { host: options.workloadHost, endpointFor: (servername) => endpointFor(servername), clock, log },
          {
            requested: options.workloadPort,
            file: options.data === undefined ? undefined : resolve(options.data, 'port'),
            flag: '--workload-port',
          },
        )
      : undefined
    if (listener) closing.unshift(() => listener.close())
    const endpoint = { host: options.workloadHost, port: listener?.port ?? 0 }
    const providers = createProviders({
      names: options.providers,
      client,
      clock,
      random,
      log,
      stores,
      endpoint,
      ...(isInCluster ? ownPodOf(io.env, access) : {}),
      providerHooks,
      gates: options.featureGates,
      ...(recording.onCall ? { onCall: recording.onCall } : {}),
      hookTransport: extensionClient.hookTransport,
    })
    endpointFor = (servername) => (servername === undefined ? undefined : providers.workloads.endpointFor(servername))
    const { kinds } = providers
    const install = (signal: AbortSignal, conversion?: WebhookClientConfig) =>
      installKinds(client, kinds, { clock, random, signal, ...(conversion ? { conversion } : {}) })
    let manager: Manager | undefined
    const webhooks = wantsWebhooks(options, election !== undefined)
      ? await serveWebhooks(options, {
          client,
          providers: options.providers,
          minVersion: tlsVersion(options.tlsMinVersion),
          admissions,
          reader: webhookReader(createClient(webhookTransport), () => manager?.informers() ?? []),
          clock,
          log,
          isAlone: election === undefined,
          leads: () => manager?.leads ?? election === undefined,
          reinstall: (conversion) => (options.installCrds ? install(io.signal, conversion) : Promise.resolve()),
        })
      : undefined
    if (webhooks) closing.unshift(() => webhooks.close())
    const prepare = async (signal: AbortSignal) => {
      if (options.installCrds) await install(signal, webhooks?.conversion)
      await webhooks?.configure()
    }
    if (!webhooks && !isInCluster) {
      await removeStaleWebhooks(client, options.providers, log)
      const noWebhooks = options.webhooks === false
      await rejectUnchecked({ client, providers: options.providers, noWebhooks, server: access.server, log, signal: io.signal })
    }
    if (!election) await prepare(io.signal)

    // Without webhooks, `lateDefaults` sets the defaults. It changes nothing if the API server itself runs the providers' admission.
    const controllers = [
      ...tunedControllers(providers.controllers, options),
      ...(webhooks ? [] : lateDefaults(admissions, kinds)),
    ]
    const running = createManager({
      client,
      clock,
      random,
      log,
      controllers,
      ...watchLimits(options),
      ...(options.syncPeriod === undefined ? {} : { syncPeriod: options.syncPeriod }),
      // Only the leader installs CustomResourceDefinitions: a waiting manager of another version must not change them.
      ...(election ? { leaderElection: { ...election, prepare } } : {}),
    })
    manager = running
    registerProcessMetrics(running.metrics.registry, requests)
    const endpoints = await serveEndpoints(running, options, { client, clock, log })
    closing.unshift(
      () => endpoints.close(),
      () => running.stop(),
      () => providers.close(),
    )
    const stops = Promise.race([untilInterrupted(io), running.ended])
    const installedKinds = options.installCrds ? kinds : []
    const start = async () => {
      await awaitKinds({ client, controllers, own: installedKinds, ...watchLimits(options), clock, log, signal: io.signal })
      await running.start()
    }
    await Promise.race([start(), stops])
    if (io.signal.aborted) return
    const webhooksText = webhooks ? `, webhooks at ${webhooks.url}` : ''
    io.out(`Manager ready: ${options.providers.join(' and ')} against ${access.server}, ${endpoints.text}${webhooksText}`)
    await stops
  } finally {
    await closeAll(closing)
  }
}
