/** Formats log lines as Kubernetes components do. Upstream: k8s.io/component-base/logs and k8s.io/klog/v2. Pure. */
import type { LogFields } from '@capstan/kube'

export type KubernetesLevel = 'debug' | 'info' | 'warn' | 'error'

export interface LogRecord {
  /** Time in milliseconds since the Unix epoch. */
  readonly at: number
  readonly level: KubernetesLevel
  readonly message: string
  readonly fields: LogFields
  readonly pid: number
}

/** klog verbosity of our levels. Upstream's controllers log messages for operators at 0, and details at 4. */
const verbosity = { debug: 4, info: 0, warn: 0, error: 0 } as const

/**
 * Formats a JSON line such as `{"ts":1580306777047,"v":0,"msg":"…","controller":"machine"}`. Errors have no `v`; warnings also have
 * `"level":"warn"`.
 */
export function jsonLine({ at, level, message, fields }: LogRecord): string {
  const verbosityField = level === 'error' ? {} : { v: verbosity[level] }
  return JSON.stringify({ ts: at, ...verbosityField, ...(level === 'warn' ? { level } : {}), msg: message, ...fields })
}

const severityLetters = { debug: 'I', info: 'I', warn: 'W', error: 'E' } as const

/** Formats a text line such as `I1122 17:14:56.000000      42 capstan] "message" key="value"`, in UTC. */
export function textLine({ at, level, message, fields, pid }: LogRecord): string {
  const time = new Date(at).toISOString()
  const [date, clock] = [time.slice(5, 10).replace('-', ''), `${time.slice(11, 23)}000`]
  const pairs = Object.entries(fields).flatMap(([key, value]) => (value === undefined ? [] : ` ${key}=${textOf(value)}`))
  return `${severityLetters[level]}${date} ${clock} ${String(pid).padStart(7)} capstan] ${JSON.stringify(message)}${pairs.join('')}`
}

/**
 * Formats `{ namespace, name }` as "namespace/name", and a string of several lines with each line after a tab, both as klog does; other
 * values as JSON.
 */
function textOf(value: unknown): string {
  if (typeof value === 'string' && value.includes('\n')) {
    const lines = value.replace(/\n$/, '').split('\n')
    return `<\n${lines.map((line) => `\t${line}`).join('\n')}\n >`
  }
  if (typeof value === 'object' && value !== null && typeof (value as { name?: unknown }).name === 'string') {
    const { namespace, name, ...otherFields } = value as { namespace?: unknown; name: string }
    if (Object.keys(otherFields).length === 0)
      return JSON.stringify(typeof namespace === 'string' && namespace !== '' ? `${namespace}/${name}` : name)
  }
  return JSON.stringify(value) ?? '""'
}
