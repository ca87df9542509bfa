/** Validates cron schedules. Upstream: github.com/robfig/cron/v3, ParseStandard, whose error texts are used here. */
import { parseDuration } from '@capstan/kube'

/** Returns the error text of a schedule; `undefined` for a valid schedule. */
export function scheduleProblem(schedule: string): string | undefined {
  const text = schedule.replace(/^(CRON_)?TZ=\S*\s*/, '')
  if (text === '') return 'empty spec string'
  if (text.startsWith('@')) return descriptorProblem(text)
  const parts = text.split(/\s+/).filter(Boolean)
  if (parts.length !== fields.length) return `expected exactly 5 fields, found ${parts.length}: [${parts.join(' ')}]`
  for (const [index, field] of fields.entries()) {
    for (const expression of parts[index]!.split(',').filter(Boolean)) {
      const problem = rangeProblem(expression, field)
      if (problem !== undefined) return problem
    }
  }
  return undefined
}

interface Field {
  readonly min: number
  readonly max: number
  readonly names?: readonly string[]
}

const fields: readonly Field[] = [
  { min: 0, max: 59 },
  { min: 0, max: 23 },
  { min: 1, max: 31 },
  { min: 1, max: 12, names: ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'] },
  { min: 0, max: 6, names: ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] },
]

const descriptors = new Set(['@yearly', '@annually', '@monthly', '@weekly', '@daily', '@midnight', '@hourly'])

function descriptorProblem(text: string): string | undefined {
  if (descriptors.has(text)) return undefined
  if (!text.startsWith('@every ')) return `unrecognized descriptor: ${text}`
  const duration = text.slice('@every '.length)
  try {
    parseDuration(duration)
    return undefined
  } catch {
    return `failed to parse duration ${text}: time: invalid duration ${JSON.stringify(duration)}`
  }
}

function rangeProblem(expression: string, field: Field): string | undefined {
  const [range = '', stepText, ...moreSteps] = expression.split('/')
  const [low = '', high, ...moreLimits] = range.split('-')
  let [start, end]: [Limit, Limit] = [field.min, field.max]
  if (low !== '*' && low !== '?') {
    start = limitOf(low, field)
    end = high === undefined ? start : limitOf(high, field)
    if (moreLimits.length > 0) return `too many hyphens: ${expression}`
    for (const limit of [start, end]) if (typeof limit === 'string') return limit
  }
  let step: Limit = 1
  if (stepText !== undefined) {
    if (moreSteps.length > 0) return `too many slashes: ${expression}`
    step = integer(stepText)
    if (typeof step === 'string') return step
    // A range with a step but without an end, such as `5/10`, ends at the maximum.
    if (high === undefined) end = field.max
  }
  const [first, last] = [start as number, end as number]
  if (first < field.min) return `beginning of range (${first}) below minimum (${field.min}): ${expression}`
  if (last > field.max) return `end of range (${last}) above maximum (${field.max}): ${expression}`
  if (first > last) return `beginning of range (${first}) beyond end of range (${last}): ${expression}`
  return step === 0 ? `step of range should be a positive number: ${expression}` : undefined
}

/** A number, or an error text. */
type Limit = number | string

function limitOf(text: string, { min, names = [] }: Field): Limit {
  const index = names.indexOf(text.toLowerCase())
  return index < 0 ? integer(text) : min + index
}

function integer(text: string): Limit {
  if (!/^[+-]?\d+$/.test(text))
    return `failed to parse int from ${text}: strconv.Atoi: parsing ${JSON.stringify(text)}: invalid syntax`
  const value = Number(text)
  return value < 0 ? `negative number (${value}) not allowed: ${text}` : value
}
