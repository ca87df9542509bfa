import { StatusError } from '@capstan/kube'
import { describe, expect, test } from 'vitest'
import { createLogger } from './logger.ts'

/** Returns the error of the line that a logger writes. */
function logged(err: unknown): { type: string; message: string; stack?: string; causes?: unknown[] } {
  const lines: string[] = []
  createLogger({ err: (line) => void lines.push(line) }, 'info').error('failed', { err })
  return JSON.parse(lines[0]!).err
}

describe('an error is logged', () => {
  test.each([Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError])('with its stack: %o', (Class) => {
    expect(logged(new Class('x'))).toEqual({ type: Class.name, message: 'x', stack: expect.stringContaining('logger.test.ts') })
  })

  test('without a stack if its class has a name of its own, because it is expected', () => {
    expect(logged(new StatusError('NotFound', 'x'))).toEqual({ type: 'StatusError', message: 'x' })
  })

  test('with its causes, and their stacks', () => {
    const cause = new ReferenceError('y')
    expect(logged(new StatusError('InternalError', 'x', { cause }))).toMatchObject({
      causes: [{ type: 'ReferenceError', stack: expect.any(String) }],
    })
  })
})
