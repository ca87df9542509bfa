import { createCatalog, type Hook, hookApiVersion, HooksGroup } from '@capstan/api'
import { hookResponseEffects } from '@capstan/core'
import { callServer, fixture, HookFailed } from '@capstan/extension'
import { isRecord, messageOf, systemClock } from '@capstan/kube'
import { Command, Option } from 'commander'
import type { Io } from '../../io.ts'
import { ExitCodes, UsageError } from '../../io.ts'
import { allHooks, type ProviderHooksOptions, withProviderHooks } from '../../provider-hooks.ts'
import { readYamlFile } from '../../read-files.ts'
import { serverAt, type ServerOptions, transportTo, withServer } from './server-at.ts'

interface Options extends ServerOptions, ProviderHooksOptions {
  handler?: string
  fixture?: string
  output: 'text' | 'json'
}

/** `capstan hooks call URL HOOK`: calls a hook once as core does, and reports how core would handle the response. */
export const callCommand = (io: Io, finish: (code: number) => void): Command =>
  withProviderHooks(withServer(new Command('call')))
    .description('Call a hook of an extension server as core would')
    .argument('<url>', 'URL of the server: https, host, optional port and path prefix')
    .argument('<hook>', 'name of the hook, such as BeforeClusterCreate, for its newest version; or GROUP/VERSION/NAME')
    .option('--handler <name>', 'handler of the hook (default: the one that discovery returns; required if there are several)')
    .option('--fixture <file>', 'the request as YAML or JSON (default: a valid one)')
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json']).default('text'))
    .action(async (url: string, name: string, options: Options) => {
      const hooks = await allHooks(options)
      const hook = hookNamed(name, hooks)
      const request = options.fixture === undefined ? validRequest(hook) : requestIn(options.fixture, hook)
      const server = serverAt(url, options)
      const transport = transportTo(options, io)
      try {
        const result = await callServer(hook, {
          server,
          request,
          ...(options.handler === undefined ? {} : { handler: options.handler }),
          timeoutSeconds: options.timeout,
          transport,
          clock: systemClock,
          signal: io.signal,
        })
        const { handler, took, response } = result
        const core = hookResponseEffects(hook, handler, request, response, hooks)
        if (options.output === 'json') io.out(JSON.stringify({ ...result, core }))
        else {
          io.out(`${hook.name}${handler === '' ? '' : ` of ${handler}`} answered after ${took} ms:`)
          io.out(JSON.stringify(response, undefined, 2))
          const caller = hook.group === HooksGroup ? 'core' : 'the caller'
          if (core.kind === 'rejected') io.err(`capstan: ${caller} rejects the response: ${core.error}`)
          else for (const effect of core.effects) io.out(`${caller} ${effect}`)
        }
        finish(core.kind === 'accepted' ? ExitCodes.done : ExitCodes.failed)
      } catch (err) {
        if (!(err instanceof HookFailed)) throw err
        if (options.output === 'json') io.out(JSON.stringify({ problem: err.problem, message: err.message }))
        else io.err(`capstan: ${err.problem}: ${err.message}`)
        finish(ExitCodes.failed)
      } finally {
        transport.close()
      }
    })

/** Returns the hook with this name; the newest version if the name contains no version. */
function hookNamed(text: string, hooks: readonly Hook[]): Hook {
  const lowerCaseName = text.toLowerCase()
  const catalog = createCatalog(hooks)
  const exact = hooks.find((candidate) => `${hookApiVersion(candidate)}/${candidate.name}`.toLowerCase() === lowerCaseName)
  const named = hooks.find((candidate) => candidate.name.toLowerCase() === lowerCaseName)
  const hook = exact ?? (named && catalog.versions(named)[0])
  if (hook) return hook
  const names = new Set(hooks.map(({ name }) => name))
  throw new UsageError(`there is no hook ${text}`, `There are ${[...names].join(', ')}.`)
}

function validRequest(hook: Hook): object {
  try {
    return fixture(hook) as object
  } catch (err) {
    throw new UsageError(messageOf(err), 'Give a request with --fixture.')
  }
}

function requestIn(file: string, { name }: Hook): object {
  const value = readYamlFile(`--fixture ${file}`, file)
  if (!isRecord(value)) throw new UsageError(`--fixture ${file}: it contains no request: expected an object`)
  const { apiVersion: _, kind, ...request } = value
  if (kind !== undefined && kind !== `${name}Request`)
    throw new UsageError(`--fixture ${file}: its kind is ${JSON.stringify(kind)}, and ${name} takes a ${name}Request`)
  return request
}
