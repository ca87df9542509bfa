/** Diagnostic pages for people. Upstream: pkg/server/statusz and pkg/server/flagz of k8s.io/apiserver, v0.36. */
import type { HttpResponse } from './exchange.ts'
import { plainText } from './health.ts'

const warning =
  'Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.'

/** State of a running server. Times are in milliseconds since the Unix epoch. */
export interface Running {
  readonly started: number
  readonly now: number
  /** Kubernetes version, such as `v1.36.2`. */
  readonly version: string
}

/** Returns the page `/statusz`. */
export function statusPage({ started, now, version }: Running): HttpResponse {
  const seconds = Math.floor((now - started) / 1000)
  const twoDigits = (value: number): string => String(value).padStart(2, '0')
  const up = `${Math.floor(seconds / 3600)} hr ${twoDigits(Math.floor(seconds / 60) % 60)} min ${twoDigits(seconds % 60)} sec`
  const binary = version.slice(1)
  return page('statusz', [
    '',
    `Started  ${dateText(new Date(started))}`,
    `Up  ${up}`,
    `Binary version  ${binary}`,
    `Emulation version  ${binary.split('.').slice(0, 2).join('.')}`,
    'Paths  /flagz /healthz /livez /metrics /readyz /statusz /version',
    '',
  ])
}

/** Returns the page `/flagz`: flags and their values. */
export const flagsPage = (flags: { readonly [name: string]: unknown }): HttpResponse =>
  page(
    'flagz',
    Object.entries(flags)
      .map(([name, value]) => `${name}:${String(value)}`)
      .sort(),
  )

const page = (name: string, lines: readonly string[]): HttpResponse => ({
  status: 200,
  headers: plainText,
  body: `\napiserver ${name}\n${warning}\n${lines.join('\n')}\n`,
})

/** Formats a time like `Sat Nov 21 14:52:06 UTC 2026`. */
function dateText(date: Date): string {
  const [, weekday, day, month, year, time] = /^(\w+), (\d+) (\w+) (\d+) (\S+)/.exec(date.toUTCString())!
  return `${weekday} ${month} ${Number(day) < 10 ? ` ${Number(day)}` : day} ${time} UTC ${year}`
}
