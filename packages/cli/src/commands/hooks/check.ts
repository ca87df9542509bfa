import { basename } from 'node:path'
import { pathToFileURL } from 'node:url'
import { checkModule, checkText, shortHandler } from '@capstan/extension'
import { Command, InvalidArgumentError, Option } from 'commander'
import { extensionModule, projectOf, registrationOf } from '../../dev/project.ts'
import { readTapeFile } from '../../hook-tapes.ts'
import type { Io } from '../../io.ts'
import { ExitCodes } from '../../io.ts'

interface Options {
  tape?: string
  setting: { [name: string]: string }
  output: 'text' | 'json'
}

/** `capstan hooks check PATH`: checks that an extension is deterministic and idempotent, as core requires. */
export const checkCommand = (io: Io, finish: (code: number) => void): Command =>
  new Command('check')
    .description(
      'Call the handlers of an extension repeatedly, in several processes, and report responses that are not deterministic or not idempotent',
    )
    .argument('[path]', 'module of the extension, or a folder with extension.ts', '.')
    .option('--tape <file>', 'also send the requests of a tape, which is a file that --record-hooks wrote')
    .addOption(
      new Option(
        '--setting <name=value>',
        'setting for generated requests; overrides the setting of the same name in manifests/; may be repeated',
      )
        .argParser(setting)
        .default({}, 'the settings in manifests/'),
    )
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json']).default('text'))
    .action(async (path: string, options: Options) => {
      const module = extensionModule(path)
      const settings = { ...registrationOf(projectOf(module)).settings, ...options.setting }
      const requests = requestsIn(options.tape)
      const report = await checkModule(pathToFileURL(module), { settings, requests, signal: io.signal })
      io.out(options.output === 'json' ? JSON.stringify(report) : checkText(report))
      finish(report.findings.length > 0 ? ExitCodes.failed : ExitCodes.done)
    })

/** Returns the requests of the tape without duplicates, and without requests of Discovery, which have no handler. */
function requestsIn(tape: string | undefined) {
  if (tape === undefined) return []
  const sentRequests = new Set<string>()
  return readTapeFile(tape).calls.flatMap((call) => {
    const { hook, handler, request, line } = call
    const requestKey = JSON.stringify([hook, handler, request])
    if (handler === undefined || sentRequests.has(requestKey)) return []
    sentRequests.add(requestKey)
    return [{ hook, handler: shortHandler(call), request, from: `line ${line} of ${basename(tape)}` }]
  })
}

function setting(text: string, before: { [name: string]: string }): { [name: string]: string } {
  const separator = text.indexOf('=')
  if (separator < 1) throw new InvalidArgumentError('expected name=value.')
  return { ...before, [text.slice(0, separator)]: text.slice(separator + 1) }
}
