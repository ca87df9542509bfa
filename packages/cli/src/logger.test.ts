import { StatusError } from '@capstan/kube'
import { describe, expect, test } from 'vitest'
import { createLogger, type LoggingFormat } from './logger.ts'

function lineOf(err: unknown, format?: LoggingFormat): string {
  const lines: string[] = []
  createLogger({ err: (line) => void lines.push(line) }, 'info', format).error('failed', { err })
  return lines.join('\n')
}

/** Returns the error of the line that a logger writes. */
const logged = (err: unknown): { type: string; message: string; stack?: string; causes?: unknown[] } =>
  JSON.parse(lineOf(err)).err

const errorClasses = [Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError]

describe('an error in format pino', () => {
  test.each(errorClasses.map((Class) => [Class.name, Class] as const))('has its stack if its class is %s', (_, Class) => {
    expect(logged(new Class('x'))).toEqual({ type: Class.name, message: 'x', stack: expect.stringContaining('logger.test.ts') })
  })

  test('has no stack if it is expected, such as a StatusError', () => {
    expect(logged(new StatusError('NotFound', 'x'))).toEqual({ type: 'StatusError', message: 'x' })
  })

  test('has its causes, and their stacks', () => {
    const cause = new ReferenceError('y')
    expect(logged(new StatusError('InternalError', 'x', { cause }))).toMatchObject({
      causes: [{ type: 'ReferenceError', stack: expect.any(String) }],
    })
  })
})

// Upstream: zap's encodeError, which component-base/logs/json calls with the key `err`.
describe('an error in format json', () => {
  const fieldsOf = (err: unknown) => {
    const { ts: _, msg: _msg, ...fields } = JSON.parse(lineOf(err, 'json')) as { [field: string]: unknown }
    return fields
  }
  const at = (text: string) => expect.stringMatching(new RegExp(`^${text}\\n +at .*logger\\.test\\.ts`))

  test('has its stack as errVerbose', () => {
    expect(fieldsOf(new TypeError('x'))).toEqual({ err: 'x', errVerbose: at('TypeError: x') })
    expect(fieldsOf(new Error('x'))).toEqual({ err: 'x', errVerbose: at('Error: x') })
  })

  test('has no stack if it is expected, such as a StatusError, or if it is not an Error', () => {
    expect(fieldsOf(new StatusError('NotFound', 'x'))).toEqual({ err: 'x' })
    expect(fieldsOf('x')).toEqual({ err: '"x"' })
  })

  test('has the stacks of its causes', () => {
    const cause = new ReferenceError('y')
    expect(fieldsOf(new StatusError('InternalError', 'x', { cause }))).toEqual({ err: 'x', errVerbose: at('ReferenceError: y') })
    expect(fieldsOf(new Error('x', { cause })).errVerbose).toMatch(/^Error: x\n[^]*\nCaused by: ReferenceError: y\n +at /)
  })

  test('has the errors that it aggregates as errCauses', () => {
    const errors = [new StatusError('NotFound', 'x'), new RangeError('y')]
    expect(fieldsOf(new AggregateError(errors, 'x; y'))).toEqual({
      err: 'x; y',
      errCauses: [{ error: 'x' }, { error: 'y', errorVerbose: at('RangeError: y') }],
    })
  })
})

describe('an error in format text', () => {
  // Upstream's managers log the key `stacktrace` for a panic. klog logs no stacks of errors.
  test('has the stack of a programming error as stacktrace', () => {
    const line = lineOf(new Error('x', { cause: new TypeError('y') }), 'text')
    expect(line).toMatch(/\] "failed" err="x" stacktrace=<\n\tTypeError: y\n\t +at .*logger\.test\.ts[^]*\n >$/)
    expect(line).not.toContain('Error: x')
  })

  test('has no stack if its class is Error', () => expect(lineOf(new Error('x'), 'text')).toMatch(/\] "failed" err="x"$/))
})
