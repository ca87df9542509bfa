import * as api from '@capstan/api'
import * as local from '@capstan/local'
import { describe, expect, test } from 'vitest'
import type { JSONSchema } from '../schema.ts'
import { compileRules } from './rules.ts'

/** Returns a text for each rule of a schema and its inner schemas: path, source, and the compile error or `compiles`. */
function compileResults(schema: JSONSchema, path = '', isRoot = true): string[] {
  const results = compileRules(schema, isRoot).map(
    ({ rule, error, messageError }) => `${path} ${rule.rule}: ${error ?? messageError ?? 'compiles'}`,
  )
  const parts: [string, JSONSchema][] = Object.entries(schema.properties ?? {})
  if (schema.items) parts.push(['[]', schema.items])
  if (typeof schema.additionalProperties === 'object') parts.push(['{}', schema.additionalProperties])
  return [...results, ...parts.flatMap(([name, part]) => compileResults(part, `${path}.${name}`, false))]
}

const schemasOf = (module: object): [string, JSONSchema][] =>
  Object.entries(module).flatMap(([name, value]) =>
    typeof value === 'object' && value !== null && 'schema' in value && 'plural' in value
      ? [[name, value.schema as JSONSchema] as [string, JSONSchema]]
      : [],
  )

const compileFailures = (results: readonly string[]): string[] => results.filter((result) => !result.endsWith(': compiles'))

describe('rules of kinds', () => {
  test('every rule of the stored versions of the kinds in @capstan/api and @capstan/local compiles', () => {
    const results = [...schemasOf(api), ...schemasOf(local)].flatMap(([kind, schema]) => compileResults(schema, kind))
    expect(results.length).toBeGreaterThan(3)
    expect(compileFailures(results)).toEqual([])
  })
})
