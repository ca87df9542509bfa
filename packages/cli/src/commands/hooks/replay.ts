import { createCatalog } from '@capstan/api'
import type { RepeatedCall, Tape } from '@capstan/extension'
import { differenceText, resendTape, shortHandler, type TapedCall } from '@capstan/extension'
import { systemClock } from '@capstan/kube'
import { Command, Option } from 'commander'
import { readTapeFile } from '../../hook-tapes.ts'
import type { Io } from '../../io.ts'
import { ExitCodes, UsageError } from '../../io.ts'
import { table } from '../../output/table.ts'
import { allHooks, type ProviderHooksOptions, withProviderHooks } from '../../provider-hooks.ts'
import { serverAt, type ServerOptions, transportTo, withServer } from './server-at.ts'

interface Options extends ServerOptions, ProviderHooksOptions {
  url: string
  hook?: string
  handler?: string
  output: 'text' | 'json'
}

/** `capstan hooks replay TAPE --url URL`: repeats the requests of a tape, and reports different responses. */
export const replayCommand = (io: Io, finish: (code: number) => void): Command =>
  withProviderHooks(withServer(new Command('replay')))
    .description('Send the requests of a tape to an extension server, and compare the responses with those of the tape')
    .argument('<tape>', 'file that --record-hooks of capstan up, dev or manager wrote')
    .requiredOption('--url <url>', 'URL of the server: https, host, optional port and path prefix')
    .option('--hook <name>', 'only calls of this hook')
    .option('--handler <name>', 'only calls of this handler')
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json']).default('text'))
    .action(async (file: string, options: Options) => {
      const catalog = createCatalog(await allHooks(options))
      const tape = readTapeFile(file)
      const server = serverAt(options.url, options)
      const transport = transportTo(options, io)
      const resent: RepeatedCall[] = []
      try {
        const { hook, handler, timeout } = options
        const sending = resendTape(tape, {
          server,
          catalog,
          transport,
          clock: systemClock,
          timeoutSeconds: timeout,
          signal: io.signal,
          ...(hook === undefined ? {} : { hook }),
          ...(handler === undefined ? {} : { handler }),
        })
        for await (const result of sending) resent.push(result)
      } finally {
        transport.close()
      }
      if (resent.length === 0) throw new UsageError(`${file} has no matching calls`, callsOf(tape))
      if (options.output === 'json') printJson(io, resent)
      else print(io, tape, resent)
      finish(resent.some(({ differences }) => differences.length > 0) ? ExitCodes.failed : ExitCodes.done)
    })

function callsOf({ calls }: Tape): string {
  const names = new Set(calls.map(nameOf))
  return names.size === 0 ? 'It has no calls at all.' : `It has ${[...names].sort().join(', ')}.`
}

/** Returns the names of the hook and the handler of a call. Discovery has no handler. */
const nameOf = (call: TapedCall): string => (call.handler === undefined ? call.hook : `${call.hook} of ${shortHandler(call)}`)

/** Prints one line for each handler and one for Discovery, then one line for each difference. */
function print(io: Io, tape: Tape, resent: readonly RepeatedCall[]): void {
  const rows = [...byHandler(resent)].map(([name, calls]) => {
    const [hook, handler] = name.split('\n')
    const same = calls.filter(({ differences }) => differences.length === 0).length
    return [hook!, handler!, String(calls.length), String(same), ...latencies(calls).map((ms) => `${ms} ms`)]
  })
  const heading = ['HOOK', 'HANDLER', 'CALLS', 'SAME', 'P50', 'P99', 'P50 ON TAPE', 'P99 ON TAPE']
  for (const line of table(heading, rows)) io.out(line)
  for (const { call, differences } of resent) {
    for (const difference of differences) {
      io.out(`line ${call.line}: ${nameOf(call)}: ${differenceText(difference, ['on tape', 'now'])}`)
    }
  }
  if (tape.isLastLineIncomplete) io.err('capstan: the last line of the tape is incomplete and was ignored')
  if (tape.stopped !== undefined) io.err(`capstan: the recording stopped early: ${tape.stopped}`)
}

/** Prints one JSON object for each call that differs, then one for each handler and one for Discovery. */
function printJson(io: Io, resent: readonly RepeatedCall[]): void {
  for (const { call, took, differences } of resent) {
    const { line, hook, handler, extensionConfig } = call
    if (differences.length > 0) io.out(JSON.stringify({ line, hook, handler, extensionConfig, took, differences }))
  }
  for (const [name, calls] of byHandler(resent)) {
    const [hook, handler] = name.split('\n')
    const [p50, p99, tapedP50, tapedP99] = latencies(calls)
    const different = calls.filter(({ differences }) => differences.length > 0).length
    io.out(JSON.stringify({ hook, handler, calls: calls.length, different, milliseconds: { p50, p99, tapedP50, tapedP99 } }))
  }
}

const byHandler = (resent: readonly RepeatedCall[]): Map<string, RepeatedCall[]> =>
  Map.groupBy(resent, ({ call }) => `${call.hook}\n${shortHandler(call)}`)

/**
 * Returns the median and the 99th percentile of the durations in milliseconds: first of the repeated calls, then of the taped
 * calls.
 */
const latencies = (calls: readonly RepeatedCall[]): number[] =>
  [calls.map(({ took }) => took), calls.map(({ call }) => call.took)].flatMap((durations) => [
    percentile(durations, 0.5),
    percentile(durations, 0.99),
  ])

function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!
}
