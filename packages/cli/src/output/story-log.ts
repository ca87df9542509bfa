/** The log of `capstan up`: errors that neither an object nor a line of the story reports. */
import { type LogFields, type Logger, messageOf, silent } from '@capstan/kube'
import type { Line } from '@capstan/lab'

/** Messages that the story already contains: the conditions of an object show why its reconcile failed, and hooks have their own lines. */
const shownElsewhere: ReadonlySet<string> = new Set(['Reconciler error'])

/** Logs each error as a line; equal consecutive errors of one object once, since retries repeat them. */
export function storyLog(report: (line: Line) => void): Logger {
  const last = new Map<string, string>()
  const logger = (bound: LogFields): Logger => ({
    ...silent,
    error(message, fields = {}) {
      if (shownElsewhere.has(message)) return
      const { err } = fields
      const subject = subjectOf({ ...bound, ...fields })
      const text = err === undefined ? message : `${message}: ${messageOf(err)}`
      if (last.get(subject) === text) return
      // Limits the memory of a process that runs for months.
      if (last.size >= 1000) last.clear()
      last.set(subject, text)
      report({ subject, event: 'Failed', text })
    },
    child: (fields) => logger({ ...bound, ...fields }),
  })
  return logger({})
}

/** Such as `Cluster default/demo`: the loop of a controller binds its key under the name of the kind. */
function subjectOf(fields: LogFields): string {
  const [kind, key] = Object.entries(fields).find(([name]) => /^[A-Z]/.test(name)) ?? []
  return kind === undefined ? 'capstan' : `${kind} ${String(key)}`
}
