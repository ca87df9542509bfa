import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { silent, systemClock, systemRandom } from '@capstan/kube'
import type { Line } from '@capstan/lab'
import { followChanges, memoryStores } from '@capstan/lab'
import { Command, Option } from 'commander'
import { closeAll } from '../close-all.ts'
import { commandName } from '../command-name.ts'
import { dataFolder } from '../data-folder.ts'
import type { Suggestion } from '../demo.ts'
import { Announcer } from '../dev/announcer.ts'
import { HookLines, displayPath } from '../dev/lines.ts'
import { extensionModule, manifestsOf, projectOf, registrationOf } from '../dev/project.ts'
import { trust } from '../dev/register.ts'
import { reloadingExtension } from '../dev/reloading-extension.ts'
import { recordHooks, type RecordOptions, withRecordHooks } from '../hook-tapes.ts'
import type { Io } from '../io.ts'
import { ExitCodes, untilInterrupted, UsageError } from '../io.ts'
import { statesOf } from '../output/cluster-states.ts'
import type { Story } from '../output/story.ts'
import { createStory } from '../output/story.ts'
import { portOption } from '../port-option.ts'
import { loadProviderHooks, type ProviderHooksOptions, withProviderHooks } from '../provider-hooks.ts'
import { serveManagementCluster } from '../serve-management-cluster.ts'
import { dataOption } from '../data-option.ts'

interface Options extends ProviderHooksOptions, RecordOptions {
  data?: string
  port?: number
  extensionPort?: number
  demo: boolean
  output: 'text' | 'json'
}

/**
 * `capstan dev`: runs a management cluster, and serves an extension to it over TLS. Reloads the extension when one of its files is saved.
 */
export const devCommand = (io: Io, finish: (code: number) => void): Command =>
  withProviderHooks(withRecordHooks(new Command('dev')))
    .description('Run an extension with a management cluster and a demo Cluster, and reload the extension when a file is saved')
    .argument('[path]', 'module of the extension, or a folder with extension.ts', '.')
    .addOption(
      dataOption(
        'folder for the kubeconfig and the certificate authority of the extension; state is kept in memory (default: .capstan)',
      ),
    )
    .addOption(portOption('--port <n>', 'port of the API server; 0 selects a free port (default: 6443)'))
    .addOption(portOption('--extension-port <n>', 'port of the extension; 0 selects a free port (default: 9443)'))
    .option('--no-demo', 'do not create the demo ClusterClass and Cluster')
    .addOption(
      new Option('-o, --output <format>', 'output format; json prints one object per line')
        .choices(['text', 'json'])
        .default('text'),
    )
    .action(async (path: string, options: Options) => finish(await dev(path, options, io)))

async function dev(path: string, options: Options, io: Io): Promise<number> {
  const module = extensionModule(path)
  const folder = dataFolder(io, options.data)
  if (existsSync(folder.database)) {
    throw new UsageError(
      `${folder.path} contains the state of another command, such as \`capstan up\``,
      'Give another folder with --data.',
    )
  }
  const providerHooks = await loadProviderHooks(options)
  const clock = systemClock
  const startedAt = clock.now()
  const story = createStory(io, options.output, clock, startedAt)
  const report = (line: Line) => story.report({ ...line, at: clock.now() - startedAt })
  const calls = new HookLines()
  const stop = new AbortController()
  const signal = AbortSignal.any([io.signal, stop.signal])
  const recording = await recordHooks(options, clock, (text) => report({ subject: 'Tape', event: 'RecordingProblem', text }))
  // The management cluster is closed before the extension, so that its remaining hook calls get a response.
  const closing: (() => Promise<void>)[] = []
  try {
    const served = await serveManagementCluster({
      clock,
      random: systemRandom,
      log: silent,
      stores: memoryStores(),
      pki: undefined,
      portFile: undefined,
      port: options.port,
      kubeconfig: folder.kubeconfig,
      onHookCall(call) {
        const line = calls.lineOf(call)
        if (line) report(line)
      },
      ...(recording.onCall ? { onCall: recording.onCall } : {}),
      providerHooks,
    })
    closing.push(() => served.close())
    const { client } = served.management
    report({ subject: 'API server', event: 'ApiServerReady', text: `ready at ${served.url}` })
    void followChanges(client, {
      clock,
      random: systemRandom,
      signal,
      report,
      changed: (clusters, machines) => story.clusters(() => statesOf(clusters, machines)),
    })

    const authorityFile = join(folder.path, 'extension-ca.crt')
    const extension = await reloadingExtension({
      module,
      port: options.extensionPort,
      clock,
      async trust(bundle) {
        await writeFile(authorityFile, bundle)
        await trust(client, bundle)
      },
      report,
      loaded(loaded) {
        calls.forget()
        announcer.announce(loaded)
      },
    })
    closing.push(() => extension.close())
    const { url } = extension
    report({ subject: 'Extension', event: 'ExtensionServed', text: `served at ${url}` })

    const announcer = new Announcer({
      client,
      signal,
      url,
      demo: options.demo,
      registration() {
        const project = projectOf(module)
        extension.watch(manifestsOf(project))
        return registrationOf(project)
      },
      ready: (hook) =>
        suggest(
          story,
          options,
          report,
          commandsToTry(commandName(io.env), hook, url, displayPath(authorityFile), displayPath(folder.kubeconfig), options.demo),
        ),
      failed: (problem) => report({ subject: 'Extension', event: 'ExtensionNotRegistered', text: problem }),
    })
    extension.start()
    await untilInterrupted(io)
    return ExitCodes.done
  } catch (err) {
    // Ctrl-C causes errors of interrupted work, which are not printed.
    if (!io.signal.aborted) throw err
    return ExitCodes.done
  } finally {
    stop.abort()
    story.end()
    await closeAll([...closing, () => recording.close()])
  }
}

/**
 * Returns commands for the user to try while the extension runs. `hook` is the hook to call, `authority` the file with the CA
 * to trust.
 */
function commandsToTry(
  capstan: string,
  hook: string,
  url: string,
  authority: string,
  kubeconfig: string,
  demo: boolean,
): Suggestion[] {
  const kubectl = `kubectl --kubeconfig ${kubeconfig}`
  const call = { command: `${capstan} hooks call ${url} ${hook} --ca ${authority}`, purpose: 'call the hook once, as core does' }
  if (!demo) return [call]
  return [
    call,
    { command: `${capstan} hooks waiting --kubeconfig ${kubeconfig}`, purpose: 'list the hooks that block the Cluster' },
    { command: `${kubectl} get cluster demo -o yaml`, purpose: 'show the Cluster with its conditions' },
    {
      command: `${kubectl} patch cluster demo --type=merge -p '{"spec":{"topology":{"version":"v1.36.1"}}}'`,
      purpose: 'upgrade the Cluster; hooks are called before and after each step',
    },
    { command: `${kubectl} delete cluster demo`, purpose: 'delete the Cluster' },
  ]
}

function suggest(story: Story, { output }: Options, report: (line: Line) => void, suggestions: readonly Suggestion[]): void {
  if (output === 'json') {
    for (const { command, purpose } of suggestions) report({ subject: 'capstan', event: 'Suggestion', text: purpose, command })
    return
  }
  story.note('\nSave a file to reload the extension. Try in another terminal (Ctrl-C here stops everything):\n')
  for (const { command, purpose } of suggestions) story.note(`  # ${purpose}\n  ${command}`)
  story.note('')
}
