import type { Hook } from '@capstan/api'
import { hookCatalog } from '@capstan/api'
import { answerVerdict } from '@capstan/core'
import { callServer, fixture, HookFailed } from '@capstan/extension'
import { isRecord, systemClock } from '@capstan/kube'
import { Command, Option } from 'commander'
import type { Io } from '../../io.ts'
import { ExitCodes, UsageError } from '../../io.ts'
import { valueGiven } from '../../read-given.ts'
import { serverAt, type ServerOptions, transportTo, withServer } from './server-at.ts'

interface Options extends ServerOptions {
  handler?: string
  fixture?: string
  output: 'text' | 'json'
}

/** `capstan hooks call URL HOOK`: one call as core would make it, and what core would make of the answer. */
export const callCommand = (io: Io, finish: (code: number) => void): Command =>
  withServer(new Command('call'))
    .description('Call a hook of an extension server as core would')
    .argument('<url>', 'where the server is: https, a host, perhaps a port and a prefix')
    .argument('<hook>', 'name of the hook, such as BeforeClusterCreate')
    .option('--handler <name>', 'which handler of the hook (default: the one that discovery names)')
    .option('--fixture <file>', 'the request as YAML or JSON (default: a valid one)')
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json']).default('text'))
    .action(async (url: string, name: string, options: Options) => {
      const hook = hookNamed(name)
      const request = options.fixture === undefined ? fixture(hook) : requestIn(options.fixture)
      const server = serverAt(url, options)
      const transport = transportTo(options, io)
      try {
        const answer = await callServer(hook, {
          server,
          request,
          ...(options.handler === undefined ? {} : { handler: options.handler }),
          timeoutSeconds: options.timeout,
          transport,
          clock: systemClock,
          signal: io.signal,
        })
        const { handler, took, response } = answer
        const core = answerVerdict(hook, handler, request, response)
        if (options.output === 'json') io.out(JSON.stringify({ ...answer, core }))
        else {
          io.out(`${hook.name}${handler === '' ? '' : ` of ${handler}`} answered after ${took} ms:`)
          io.out(JSON.stringify(response, undefined, 2))
          if (core.kind === 'refused') io.err(`capstan: core refuses it: ${core.error}`)
          else for (const effect of core.effects) io.out(`core ${effect}`)
        }
        finish(core.kind === 'taken' ? ExitCodes.done : ExitCodes.failed)
      } catch (err) {
        if (!(err instanceof HookFailed)) throw err
        if (options.output === 'json') io.out(JSON.stringify({ problem: err.problem, message: err.message }))
        else io.err(`capstan: ${err.problem}: ${err.message}`)
        finish(ExitCodes.failed)
      } finally {
        transport.close()
      }
    })

function hookNamed(name: string): Hook {
  const hook = hookCatalog.find((one) => one.name.toLowerCase() === name.toLowerCase())
  if (hook) return hook
  throw new UsageError(`there is no hook ${name}`, `There are ${hookCatalog.map((one) => one.name).join(', ')}.`)
}

function requestIn(file: string): object {
  const value = valueGiven(`--fixture ${file}`, file)
  if (!isRecord(value)) throw new UsageError(`--fixture ${file}: it holds no request: expected an object`)
  const { apiVersion: _a, kind: _k, ...request } = value
  return request
}
