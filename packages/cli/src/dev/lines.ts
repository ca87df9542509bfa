/** Formats reloads, hook calls and logs of an extension as output lines of `capstan dev`. */
import { relative } from 'node:path'
import { DiscoverVariables, GeneratePatches, GenerateUpgradePlan, ValidateTopology } from '@capstan/api'
import type { HookCall, Line } from '@capstan/lab'
import { lineOf } from '@capstan/lab'
import type { AnnouncedHandler, FromChild } from './protocol.ts'
import type { Reload } from './reloader.ts'

/** Formats the result of a reload. `place` is the displayed path of the module. */
export function lineOfReload(reload: Reload, place: string): Line {
  switch (reload.kind) {
    case 'loaded': {
      const { name, handlers } = reload.extension
      const text = `${reload.first ? 'loaded' : 'reloaded'} after ${reload.took} ms, handlers: ${handlersText(handlers)}`
      return { subject: `Extension ${name}`, event: reload.first ? 'ExtensionLoaded' : 'ExtensionReloaded', text }
    }
    case 'notLoaded': {
      const suffix = reload.keepsOld ? ' (the previous version keeps running)' : ''
      return { subject: place, event: 'ExtensionNotLoaded', text: `not loaded: ${reload.problem}${suffix}` }
    }
    case 'ended':
      return { subject: place, event: 'ExtensionStopped', text: `its process ended (${reload.why}): it is started again` }
  }
}

const handlersText = (handlers: readonly AnnouncedHandler[]): string =>
  handlers.map(({ name, hook }) => `${name} (${hook})`).join(', ') || 'none'

/**
 * Formats hook calls as lines. Omits repeated lines for hooks that core may call in every reconciliation of a topology or a
 * ClusterClass, many times a second while a Cluster is created.
 */
export class HookLines {
  readonly #reported = new Map<string, string>()

  /** Returns the line of a call; undefined if the line is omitted. */
  lineOf(call: HookCall): Line | undefined {
    const line = lineOf(call)
    if (!inEveryReconcile.has(call.hook)) return line
    const callKey = `${call.hook} ${line.subject}`
    if (this.#reported.get(callKey) === line.text) return undefined
    this.#reported.set(callKey, line.text)
    return line
  }

  /** Forgets the printed responses after a reload, so that equal responses of the new process are printed. */
  forget(): void {
    this.#reported.clear()
  }
}

const inEveryReconcile: ReadonlySet<string> = new Set(
  [GeneratePatches, ValidateTopology, DiscoverVariables, GenerateUpgradePlan].map(({ name }) => name),
)

/** Formats a log entry of an extension, or of one of its handlers. */
export function lineOfLog({ level, message, fields }: Extract<FromChild, { kind: 'log' }>): Line {
  const { hook: _hook, handler, ...otherFields } = fields
  const fieldTexts = Object.entries(otherFields).map(([name, value]) => ` ${name}=${textOf(value)}`)
  return {
    subject: handler === undefined ? 'Extension' : `Handler ${textOf(handler)}`,
    event: level === 'error' ? 'HandlerFailed' : 'HandlerLogged',
    text: `${message}${fieldTexts.join('')}`,
  }
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

/** Formats a line that the extension printed. */
export const lineOfOutput = (text: string): Line => ({ subject: 'Extension', event: 'ExtensionPrinted', text })

/** Formats a path relative to `folder` (default: the current folder); returns a path outside of it unchanged. */
export function displayPath(path: string, folder = ''): string {
  const relativePath = relative(folder, path)
  return relativePath.startsWith('..') ? path : relativePath || '.'
}
