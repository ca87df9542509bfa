/** Logger of `capstan up`: prints errors as lines, except errors that conditions of objects show. */
import { type LogFields, type Logger, messageOf, silent } from '@capstan/kube'
import type { Line } from '@capstan/lab'

/** Log messages that are not printed, because conditions of the object show why its reconciliation failed. */
const shownElsewhere: ReadonlySet<string> = new Set(['Reconciler error'])

/**
 * Creates a logger that reports each error as a line. Reports equal consecutive errors of an object once, because retries repeat
 * them.
 */
export function storyLog(report: (line: Line) => void): Logger {
  const lastTexts = new Map<string, string>()
  const logger = (boundFields: LogFields): Logger => ({
    ...silent,
    error(message, fields = {}) {
      if (shownElsewhere.has(message)) return
      const { err } = fields
      const subject = subjectOf({ ...boundFields, ...fields })
      const text = err === undefined ? message : `${message}: ${messageOf(err)}`
      if (lastTexts.get(subject) === text) return
      // Limits the memory of a process that runs for months.
      if (lastTexts.size >= 1000) lastTexts.clear()
      lastTexts.set(subject, text)
      report({ subject, event: 'Failed', text })
    },
    child: (fields) => logger({ ...boundFields, ...fields }),
  })
  return logger({})
}

/** Returns a subject such as `Cluster default/demo`. Controllers log the key of an object in a field with the name of its kind. */
function subjectOf(fields: LogFields): string {
  const [kind, key] = Object.entries(fields).find(([name]) => /^[A-Z]/.test(name)) ?? []
  return kind === undefined ? 'capstan' : `${kind} ${String(key)}`
}
