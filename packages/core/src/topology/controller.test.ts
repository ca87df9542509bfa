import type { ClusterClass } from '@capstan/api'
import { expect, test } from 'vitest'
import { classMatters } from './controller.ts'

const aClass = (generation: number, observedGeneration: number, uid = 'a'): ClusterClass =>
  ({
    metadata: { uid, generation },
    status: { observedGeneration, conditions: [{ type: 'VariablesReady', status: 'True' }] },
  }) as unknown as ClusterClass

test.each([
  ['accepts a new class', undefined, aClass(1, 0), true],
  ['accepts the deletion of a class', aClass(1, 1), undefined, true],
  ['ignores the edit of a usable class', aClass(1, 1), aClass(2, 1), false],
  ['accepts the edit of a class that could not be used', aClass(1, 0), aClass(2, 0), true],
  ['accepts the status of the class controller', aClass(2, 1), aClass(2, 2), true],
  ['accepts an edit and its status in one event, after an interruption of the watch', aClass(1, 1), aClass(2, 2), true],
  ['accepts another class of the same name in one event', aClass(2, 2), aClass(1, 0, 'b'), true],
])('the predicate of classes %s', (_, previous, object, accepted) =>
  expect(classMatters({ previous, object } as never)).toBe(accepted),
)
