import { resolve } from 'node:path'
import { type ListenOptions, openDurable } from '@capstan/apiserver'
import { createManager, installKinds, serveDiagnostics } from '@capstan/controller'
import { createClient, systemClock, systemRandom, type WebhookClientConfig } from '@capstan/kube'
import { httpsTransport, loadKubeconfig } from '@capstan/kube/node'
import type { ProviderName, Stores } from '@capstan/lab'
import { createProviders, lateDefaults, memoryStores, providerAdmission, ProviderNames } from '@capstan/lab'
import { Command, InvalidArgumentError, Option } from 'commander'
import type { Io } from '../io.ts'
import { ExitCodes, untilInterrupted } from '../io.ts'
import { hookClient, type HookClientOptions, withHookClientCertificate } from '../hook-client.ts'
import { recordHooks, type RecordOptions, withRecordHooks } from '../hook-tapes.ts'
import {
  ensureNamespace,
  leaderElection,
  type LeaderElectionFlags,
  refuseBesideUpstream,
  withLeaderElection,
} from '../leader-election.ts'
import { createLogger } from '../logger.ts'
import { serveWebhooks, wantsWebhooks, type WebhookFlags, withWebhooks } from '../manager-webhooks.ts'
import type { LogLevel } from '../logger.ts'
import { loadProviderHooks, type ProviderHooksOptions, withProviderHooks } from '../provider-hooks.ts'
import { listenOnSamePort } from '../same-port.ts'
import { portOption } from '../port-option.ts'
import { host } from '../serve-plane.ts'

interface Options extends RecordOptions, LeaderElectionFlags, HookClientOptions, WebhookFlags, ProviderHooksOptions {
  kubeconfig: string
  providers: ProviderName[]
  installCrds: boolean
  data?: string
  workloadPort?: number
  diagnosticsPort: number
  logLevel: LogLevel
}

/** `capstan manager`: the controllers against any API server. */
export const managerCommand = (io: Io, finish: (code: number) => void): Command =>
  withProviderHooks(withWebhooks(withHookClientCertificate(withLeaderElection(withRecordHooks(new Command('manager'))))))
    .description('Run the controllers against any Kubernetes API server')
    .requiredOption('--kubeconfig <file>', 'kubeconfig of the management cluster')
    .addOption(
      new Option('--providers <names>', 'which providers to run, separated by commas')
        .argParser(providerNames)
        .default([...ProviderNames], ProviderNames.join(',')),
    )
    .option('--no-install-crds', 'expect the CustomResourceDefinitions to be there')
    .option('--data <dir>', 'folder for simulated workload clusters of the local provider (default: memory only)')
    .addOption(
      portOption(
        '--workload-port <n>',
        'port that serves the simulated workload clusters; 0 takes any (default: the one used before)',
      ),
    )
    .addOption(portOption('--diagnostics-port <n>', 'port of health and metrics, on loopback; 0 takes any').default(8080))
    .addOption(
      new Option('--log-level <level>', 'least important lines to log')
        .choices(['debug', 'info', 'warn', 'error'])
        .default('info'),
    )
    .action(async (options: Options) => {
      await manage(options, io)
      finish(ExitCodes.done)
    })

async function manage(options: Options, io: Io): Promise<void> {
  const clock = systemClock
  const random = systemRandom
  const log = createLogger(io, options.logLevel)
  const election = leaderElection(options, random)
  const providerHooks = await loadProviderHooks(options)
  const admissions = providerAdmission(providerHooks)
  const reach = hookClient(options, io.env, log)
  const transport = httpsTransport(await loadKubeconfig(options.kubeconfig), { clock, random, userAgent: 'capstan' })
  const client = createClient(transport)
  const stores: Stores =
    options.data === undefined ? memoryStores() : await openDurable(resolve(options.data, 'db'), { clock, log })
  const recording = await recordHooks(options, clock, (problem) => log.error(problem, { file: options.recordHooks }))
  const closing: (() => Promise<void>)[] = [async () => reach.close(), () => recording.close(), () => stores.close()]
  try {
    if (options.providers.includes('core')) await refuseBesideUpstream(client, { clock, signal: io.signal })
    if (election) await ensureNamespace(client, election.namespace, io.signal)
    let endpointFor: ListenOptions['planes'] = () => undefined
    const listener = options.providers.includes('local')
      ? await listenOnSamePort(
          { host, planes: (servername) => endpointFor(servername), clock, log },
          { asked: options.workloadPort, file: options.data === undefined ? undefined : resolve(options.data, 'port') },
        )
      : undefined
    if (listener) closing.unshift(() => listener.close())
    const endpoint = { host, port: listener?.port ?? 0 }
    const providers = createProviders({
      names: options.providers,
      client,
      clock,
      random,
      log,
      stores,
      endpoint,
      providerHooks,
      ...(recording.onCall ? { onCall: recording.onCall } : {}),
      hookTransport: reach.hookTransport,
    })
    endpointFor = (servername) => (servername === undefined ? undefined : providers.workloads.endpointFor(servername))
    const { kinds } = providers
    const install = (signal: AbortSignal, conversion?: WebhookClientConfig) =>
      installKinds(client, kinds, { clock, random, signal, ...(conversion ? { conversion } : {}) })
    const webhooks = wantsWebhooks(options, election !== undefined)
      ? await serveWebhooks(options, {
          client,
          kinds,
          admissions,
          clock,
          log,
          reinstall: (conversion) => (options.installCrds ? install(io.signal, conversion) : Promise.resolve()),
        })
      : undefined
    if (webhooks) closing.unshift(() => webhooks.close())
    const prepare = async (signal: AbortSignal) => {
      if (options.installCrds) await install(signal, webhooks?.conversion)
      await webhooks?.configure()
    }
    if (!election) await prepare(io.signal)

    // Whether the API server runs our admission nobody can tell; where it does these have nothing to do.
    const controllers = [...providers.controllers, ...(webhooks ? [] : lateDefaults(admissions, kinds))]
    const manager = createManager({
      client,
      clock,
      random,
      log,
      controllers,
      // Definitions are the leader's business: a manager of another version that only waits must not change them.
      ...(election ? { leaderElection: { ...election, prepare } } : {}),
    })
    const diagnostics = await serveDiagnostics(manager, options.diagnosticsPort)
    closing.unshift(
      () => diagnostics.close(),
      () => manager.stop(),
      () => providers.close(),
    )
    const stops = Promise.race([untilInterrupted(io), manager.ended])
    await Promise.race([manager.start(), stops])
    if (io.signal.aborted) return
    const { server } = await loadKubeconfig(options.kubeconfig)
    const asked = webhooks ? `, webhooks at ${webhooks.url}` : ''
    io.out(`Manager ready: ${options.providers.join(' and ')} against ${server}, diagnostics at ${diagnostics.url}${asked}`)
    await stops
  } finally {
    for (const close of closing) await close()
    transport.close()
  }
}

function providerNames(text: string): ProviderName[] {
  const names = text.split(',').map((name) => name.trim())
  const unknown = names.filter((name) => !(ProviderNames as readonly string[]).includes(name))
  if (unknown.length > 0)
    throw new InvalidArgumentError(`there is no provider ${unknown.join(', ')}: expected ${ProviderNames.join(', ')}.`)
  return names as ProviderName[]
}
