import { Cluster, ExtensionConfig } from '@capstan/api'
import type { Clock, Client } from '@capstan/kube'
import { durationText, keyText, orAbsent, parseDuration, seconds, silent, sleep, systemClock, systemRandom } from '@capstan/kube'
import type { Line, ManagementCluster, Stores } from '@capstan/lab'
import { followChanges, lineOf, memoryStores } from '@capstan/lab'
import { Command, InvalidArgumentError, Option } from 'commander'
import { resolve } from 'node:path'
import { closeAll } from '../close-all.ts'
import { commandName } from '../command-name.ts'
import { dataFolder } from '../data-folder.ts'
import { openFolder, recordOwner } from '../folder-owner.ts'
import { bringUpDemo, DemoCluster, firstSuggestions, type Suggestion, suggestions, untilTrue } from '../demo.ts'
import { playHooks, recordHooks, type RecordOptions, withRecordHooks } from '../hook-tapes.ts'
import { hookClient, type HookClientOptions, withHookClientCertificate } from '../hook-client.ts'
import type { Io } from '../io.ts'
import { ExitCodes, untilInterrupted, UsageError } from '../io.ts'
import { portOption } from '../port-option.ts'
import { loadProviderHooks, type ProviderHooksOptions, withProviderHooks } from '../provider-hooks.ts'
import { serveManagementCluster } from '../serve-management-cluster.ts'
import { statesOf } from '../output/cluster-states.ts'
import type { Story } from '../output/story.ts'
import { createStory } from '../output/story.ts'
import { storyLog } from '../output/story-log.ts'
import type { SampleExtension } from '../sample-extension.ts'
import { registerSampleExtension, startSampleExtension } from '../sample-extension.ts'
import { dataOption } from '../data-option.ts'

interface Options extends ProviderHooksOptions, RecordOptions, HookClientOptions {
  demo?: boolean
  data?: string
  memory?: boolean
  port?: number
  kubeconfig?: string
  output: 'text' | 'json'
  exitWhenReady?: boolean
  /** Milliseconds. */
  timeout: number
  replayHooks?: string
}

/** `capstan up`: runs a whole management cluster in this process, and with `--demo` a Cluster on it. */
export const upCommand = (io: Io, finish: (code: number) => void): Command =>
  withProviderHooks(withHookClientCertificate(withRecordHooks(new Command('up'))))
    .description('Start a management cluster in this process: API server, core provider and local provider')
    .option('--demo', 'create a ClusterClass, a runtime extension and a Cluster of that class')
    .addOption(dataOption('folder for state, certificates and kubeconfig (default: .capstan)'))
    .addOption(new Option('--memory', 'keep state in memory only; it is lost when the process ends').conflicts('data'))
    .addOption(portOption('--port <n>', 'port of the API server; 0 selects a free port (default: the port used before, or 6443)'))
    .option('--kubeconfig <file>', 'file to write the kubeconfig to (default: kubeconfig in the data folder)')
    .addOption(
      new Option('-o, --output <format>', 'output format; json prints one object per line')
        .choices(['text', 'json'])
        .default('text'),
    )
    .option(
      '--exit-when-ready',
      'with --demo: exit with code 0 when the cluster is Available, or with code 1 and the reason after --timeout',
    )
    .addOption(
      new Option('--timeout <duration>', 'with --exit-when-ready: maximum time until the cluster is Available')
        .argParser(duration)
        .default(seconds(120), '2m'),
    )
    .option(
      '--replay-hooks <file>',
      'do not call extensions; use the responses of a tape, which is a file that --record-hooks wrote',
    )
    .action(async (options: Options) => finish(await up(options, io)))

async function up(options: Options, io: Io): Promise<number> {
  const clock = systemClock
  const startedAt = clock.now()
  const story = createStory(io, options.output, clock, startedAt)
  const report = (line: Line) => story.report({ ...line, at: clock.now() - startedAt })
  if (options.exitWhenReady && !options.demo) throw new UsageError('--exit-when-ready waits for the cluster of --demo')
  const folder = dataFolder(io, options.data)
  const providerHooks = await loadProviderHooks(options)
  const extensionClient = await hookClient(options, io.env, silent)
  const playing = options.replayHooks === undefined ? undefined : playHooks(options.replayHooks)
  const recording = await recordHooks(options, clock, (text) => report({ subject: 'Tape', event: 'RecordingProblem', text }))
  const stores: Stores = options.memory ? memoryStores() : await openFolder(folder, clock)

  let extension: SampleExtension | undefined
  // Closed after the management cluster, which uses them until then: its remaining hook calls need a response.
  const closing: (() => Promise<void>)[] = [
    async () => extension?.stop(),
    async () => extensionClient.close(),
    () => recording.close(),
    () => stores.close(),
  ]
  const stop = new AbortController()
  const signal = AbortSignal.any([io.signal, stop.signal])
  try {
    const kubeconfig = options.kubeconfig === undefined ? folder.kubeconfig : resolve(io.cwd, options.kubeconfig)
    const served = await serveManagementCluster({
      clock,
      random: systemRandom,
      log: storyLog(report),
      stores,
      pki: options.memory ? undefined : folder.pki,
      portFile: options.memory ? undefined : folder.port,
      port: options.port,
      kubeconfig,
      onHookCall: (call) => report(lineOf(call)),
      ...(recording.onCall ? { onCall: recording.onCall } : {}),
      hookTransport: (playing ?? extensionClient).hookTransport,
      providerHooks,
    })
    const { management, url } = served
    closing.unshift(() => served.close())
    if (!options.memory) closing.unshift(await recordOwner(folder, { pid: io.pid, url }))
    report({ subject: 'API server', event: 'ApiServerReady', text: `ready at ${url}` })
    // After a restart, the ExtensionConfig still has the URL of the previous extension process, so that discovery fails until the new process
    // is registered. Failures before the start of the new process are not printed.
    const isExpectedFailure = ({ event, subject }: Line) =>
      options.demo && !extension && event === 'ExtensionNotDiscovered' && subject === 'ExtensionConfig sample'
    const ready = watchReady(management, clock, signal, story, (line) => {
      if (!isExpectedFailure(line)) report(line)
    })

    let outcome: Outcome = 'ready'
    const tapedConfigs = await playing?.register(management.client)
    if (options.demo) {
      if (!tapedConfigs)
        extension = await startSampleExtension({
          client: management.client,
          clock,
          onExit: (reason) => report({ subject: 'Sample extension', event: 'ExtensionStopped', text: `stopped: ${reason}` }),
        })
      const available = startDemo(management, extension, tapedConfigs ?? ['sample'], signal).then(() => ready)
      outcome = await Promise.race([
        available,
        afterInterrupt(signal),
        ...(options.exitWhenReady ? [afterTimeout(options.timeout, clock, signal)] : []),
      ])
    }
    if (outcome === 'ready' && !signal.aborted) {
      const hasDemo = options.demo || (await orAbsent(management.client.get(Cluster, DemoCluster))) !== undefined
      suggest(
        story,
        options,
        kubeconfig,
        hasDemo ? suggestions(kubeconfig, commandName(io.env)) : firstSuggestions(kubeconfig),
        report,
      )
    }
    if (options.exitWhenReady) {
      if (outcome === 'ready') return ExitCodes.done
      if (outcome === 'stopped') return ExitCodes.interrupted
      story.end()
      io.err(
        `capstan: Cluster demo is not Available after ${durationText(options.timeout)}: ${await reasonNotAvailable(management.client)}`,
      )
      return ExitCodes.failed
    }
    await untilInterrupted(io)
    return ExitCodes.done
  } catch (err) {
    // Ctrl-C causes errors of interrupted work, which are not printed.
    if (!io.signal.aborted) throw err
    return options.exitWhenReady ? ExitCodes.interrupted : ExitCodes.done
  } finally {
    stop.abort()
    story.end()
    await closeAll(closing)
  }
}

async function startDemo(
  management: ManagementCluster,
  extension: SampleExtension | undefined,
  extensionConfigs: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  if (extension) await registerSampleExtension(management.client, extension)
  for (const name of extensionConfigs) await untilTrue(management.client, ExtensionConfig, { name }, 'Discovered', signal)
  await bringUpDemo(management.client, signal)
}

/** Reason for which the wait for the demo cluster ended: it is Available, --timeout has passed, or the command was interrupted. */
type Outcome = 'ready' | 'late' | 'stopped'

/** Reports the events of the management cluster. Resolves when the demo cluster is Available, or with 'stopped' after an abort. */
function watchReady(
  management: ManagementCluster,
  clock: Clock,
  signal: AbortSignal,
  story: Story,
  report: (line: Line) => void,
): Promise<Outcome> {
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve('stopped'), { once: true })
    void followChanges(management.client, {
      clock,
      random: systemRandom,
      signal,
      report(line) {
        report(line)
        if (line.event === 'ClusterAvailable' && line.cluster === keyText(DemoCluster)) resolve('ready')
      },
      changed: (clusters, machines) => story.clusters(() => statesOf(clusters, machines)),
    })
  })
}

const afterInterrupt = (signal: AbortSignal): Promise<Outcome> => untilInterrupted({ signal }).then(() => 'stopped')

const afterTimeout = (timeout: number, clock: Clock, signal: AbortSignal): Promise<Outcome> =>
  sleep(clock, timeout, signal).then(
    () => 'late',
    () => 'stopped',
  )

function duration(text: string): number {
  let milliseconds: number
  try {
    milliseconds = parseDuration(text)
  } catch {
    milliseconds = 0
  }
  if (milliseconds <= 0) throw new InvalidArgumentError('expected a duration such as 90s or 2m.')
  return milliseconds
}

function suggest(
  story: Story,
  { output, memory }: Options,
  kubeconfig: string,
  suggestions: readonly Suggestion[],
  report: (line: Line) => void,
): void {
  if (output === 'json') {
    for (const { command, purpose } of suggestions) report({ subject: 'capstan', event: 'Suggestion', text: purpose, command })
    report({ subject: 'capstan', event: 'Ready', text: `kubeconfig ${kubeconfig}` })
    return
  }
  const stateText = memory ? 'its state is lost then' : 'the next start continues where it stopped'
  story.note(`\nTry in another terminal (Ctrl-C here stops the management cluster; ${stateText}):\n`)
  for (const { command, purpose } of suggestions) story.note(`  # ${purpose}\n  ${command}`)
  story.note('')
}

/** Returns why the demo Cluster is not Available. TopologyReconciled is checked first, because Available depends on it. */
async function reasonNotAvailable(client: Client): Promise<string> {
  const cluster = await orAbsent(client.get(Cluster, DemoCluster))
  if (!cluster) return 'it does not exist'
  for (const type of ['TopologyReconciled', 'Available']) {
    const condition = cluster.status?.conditions?.find((item) => item.type === type)
    if (condition && condition.status !== 'True')
      return `${type} is ${condition.status}: ${condition.message || condition.reason}`
  }
  return 'it has no condition Available yet'
}
