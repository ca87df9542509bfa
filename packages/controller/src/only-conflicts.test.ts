import { StatusError } from '@capstan/kube'
import { expect, test } from 'vitest'
import { onlyConflicts } from './only-conflicts.ts'

const conflict = new StatusError('Conflict', 'the object has been modified')

test.each<[title: string, expected: boolean, err: unknown]>([
  ['a conflict', true, conflict],
  ['an error whose cause is a conflict', true, new Error('cannot write', { cause: conflict })],
  ['several conflicts', true, new AggregateError([conflict, new Error('cannot write', { cause: conflict })])],
  ['a conflict and another error', false, new AggregateError([conflict, new Error('out of order')])],
  ['an aggregate without errors', false, new AggregateError([], 'all servers failed')],
  ['another error', false, new Error('out of order')],
])('for %s, onlyConflicts returns %j', (_, expected, err) => expect(onlyConflicts(err)).toBe(expected))
