/**
 * Expected costs, occurrences and error texts are those of cel-go and the estimator of apiextensions-apiserver v0.36.2, recorded in
 * `testdata/upstream.json`.
 */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { JSONSchema } from '../schema.ts'
import { declaredSize, mostOccurrences } from './declared-size.ts'
import { estimatedCost } from './estimate.ts'
import { schemaView } from './schema-view.ts'

interface Recorded<T> {
  readonly schema: JSONSchema
  readonly rules: { readonly [rule: string]: T }
}

const { costs, texts } = JSON.parse(readFileSync(new URL('testdata/upstream.json', import.meta.url), 'utf8')) as {
  readonly costs: readonly (Recorded<number> & { readonly occurrences: number })[]
  readonly texts: readonly Recorded<string>[]
}

const costOf = (rule: string, schema: JSONSchema): number => {
  const { type } = schemaView(schema)!
  const variables = [
    { name: 'self', type },
    { name: 'oldSelf', type },
  ]
  return estimatedCost(rule, variables, declaredSize(schema, false)!)
}

function problemOf(compile: () => unknown): string {
  try {
    compile()
  } catch (err) {
    return (err as Error).message
  }
  return 'none'
}

describe.each(costs)('a schema of type $schema.type ($#)', ({ schema, rules, occurrences }) => {
  test('has as many occurrences in one object as upstream estimates', () => {
    expect(mostOccurrences(declaredSize(schema, false)!)).toBe(occurrences)
  })

  test.each(Object.entries(rules))('the rule %s has the estimated cost %d', (rule, cost) => {
    // Compares twelve digits: costs above 2^53 are not exact in JavaScript.
    expect(costOf(rule, schema) / Math.max(1, cost)).toBeCloseTo(cost === 0 ? 0 : 1, 12)
  })
})

describe.each(texts)('compile errors of rules for a schema of type $schema.type ($#)', ({ schema, rules }) => {
  test.each(Object.entries(rules))('of %s are those of upstream', (rule, text) => {
    expect(problemOf(() => costOf(rule, schema))).toBe(text)
  })
})
