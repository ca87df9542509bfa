/**
 * Main program of the process in which `capstan dev` runs an extension: loads one module on request, handles calls, and exits when
 * its parent ends. `capstan dev` starts the process in advance, so that common imports are already loaded when a file is saved.
 */
import { registerHooks } from 'node:module'
import { dirname } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { hookApiVersion } from '@capstan/api'
import type { Extension, FetchHandler } from '@capstan/extension'
import { extensionIn, extensionServer } from '@capstan/extension'
import type { LogFields, Logger } from '@capstan/kube'
import { messageOf } from '@capstan/kube'
import { isOfAPackage, loadProblem } from './load-problem.ts'
import type { FromChild, ToChild } from './protocol.ts'

const send = (message: FromChild): void => void process.send?.(message)

let serve: FetchHandler | undefined
/** Folder to which reported file positions are relative. */
let folder = process.cwd()
const callsInProgress = new Map<number, AbortController>()

process.on('message', (message: ToChild) => {
  if (message.kind === 'load') void load(message.file)
  else if (message.kind === 'call') void handleCall(message)
  else callsInProgress.get(message.id)?.abort()
})
process.once('disconnect', () => process.exit(0))

async function load(file: string): Promise<void> {
  folder = dirname(file)
  const files = new Set<string>([file])
  const addFile = (url: string) => {
    if (url.startsWith('file:') && !isOfAPackage(url)) files.add(fileURLToPath(url))
  }
  const hooks = registerHooks({
    resolve(specifier, context, next) {
      try {
        return next(specifier, context)
      } catch (err) {
        // The parent watches the missing file, because it may be created later.
        if (specifier.startsWith('.') && context.parentURL) addFile(new URL(specifier, context.parentURL).href)
        throw err
      }
    },
    load(url, context, next) {
      addFile(url)
      return next(url, context)
    },
  })
  try {
    const exports = (await import(pathToFileURL(file).href)) as { [name: string]: unknown }
    const extension = await extensionIn(exports)
    serve = extensionServer(extension, { log: logger({}) })
    send({ kind: 'loaded', name: extension.name, handlers: announcedHandlers(extension), files: [...files] })
  } catch (err) {
    send({ kind: 'notLoaded', problem: loadProblem(err, folder, [...files].at(-1)), files: [...files] })
  } finally {
    hooks.deregister()
  }
}

const announcedHandlers = ({ handlers }: Extension) =>
  handlers.map(({ hook, name, timeoutSeconds, failurePolicy }) => ({
    hook: hook.name,
    apiVersion: hookApiVersion(hook),
    name,
    ...(timeoutSeconds === undefined ? {} : { timeoutSeconds }),
    ...(failurePolicy === undefined ? {} : { failurePolicy }),
  }))

async function handleCall({ id, method, url, headers, body }: Extract<ToChild, { kind: 'call' }>): Promise<void> {
  const callAbort = new AbortController()
  callsInProgress.set(id, callAbort)
  try {
    const hasBody = method !== 'GET' && method !== 'HEAD'
    const request = new Request(url, {
      method,
      headers: headers.map(([name, value]) => [name, value] as [string, string]),
      signal: callAbort.signal,
      ...(hasBody ? { body } : {}),
    })
    const response = await serve!(request)
    send({ kind: 'answered', id, status: response.status, headers: [...response.headers], body: await response.text() })
  } catch (err) {
    send({ kind: 'answered', id, status: 500, headers: [], body: `${messageOf(err)}\n` })
  } finally {
    callsInProgress.delete(id)
  }
}

/**
 * Creates a logger that sends entries to the parent, which prints them. Discards debug entries, and 'Hook answered', because the parent
 * prints lines of its own for hook calls.
 */
function logger(bound: LogFields): Logger {
  const write =
    (level: string) =>
    (message: string, fields: LogFields = {}): void => {
      if (message === 'Hook answered') return
      const { err, ...otherFields } = { ...bound, ...fields } as { err?: unknown }
      const errorField = err === undefined ? {} : { err: loadProblem(err, folder) }
      send({ kind: 'log', level, message, fields: { ...otherFields, ...errorField } })
    }
  return {
    debug() {},
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: (fields) => logger({ ...bound, ...fields }),
  }
}
