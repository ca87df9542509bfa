import { readdirSync, readFileSync } from 'node:fs'
import { atOnce } from '../clock.ts'
import { describe, expect, test } from 'vitest'
import { equal, isRecord } from '../json.ts'
import { adaptToType } from './adapt.ts'
import { typeProblems } from './check-type.ts'
import { compareTyped } from './compare.ts'
import type { FieldSet } from './field-set.ts'
import {
  difference,
  intersection,
  leavesOf,
  pathText,
  pathsOf,
  recursiveDifference,
  sameSet,
  sizeOf,
  union,
} from './field-set.ts'
import { extractFields } from './extract.ts'
import { fieldsOf, removeFields } from './fields-of.ts'
import { decodeFields, encodeFields } from './fields-v1.ts'
import { mergeTyped } from './merge.ts'
import { elementText, parseElement } from './path-element.ts'
import type { Field, ListType, MapType, Type } from './type.ts'
import { atomicType, deducedType } from './type.ts'
import type { Managers, Typed } from './updater.ts'
import { ApplyConflicts, applyConfig, ownersAfterUpdate } from './updater.ts'

// Scenarios and unit cases with the results of the reference implementation, structured-merge-diff (smd) v6.4.2: see testdata/README.md.
const read = (file: string) => JSON.parse(readFileSync(new URL(`testdata/${file}`, import.meta.url), 'utf8'))

// Schemas in the reference implementation's own form

interface TypeRef {
  namedType?: string
  elementRelationship?: string
  scalar?: Type['scalar']
  list?: { elementType: TypeRef; elementRelationship?: string; keys?: string[] }
  map?: { fields?: { name: string; type: TypeRef; default?: unknown }[]; elementType?: TypeRef; elementRelationship?: string }
}
const schemas = read('schemas.json') as Record<string, { types: (TypeRef & { name: string })[] }>

const resolved = new Map<string, Type>()

function typeOf(schemaRef: string, ref: TypeRef): Type {
  const key = `${schemaRef} ${JSON.stringify(ref)}`
  const cached = resolved.get(key)
  if (cached) return cached
  if (ref.namedType === '__untyped_deduced_') return deducedType
  if (ref.namedType === '__untyped_atomic_') return atomicType
  const named = schemas[schemaRef]!.types.find(({ name }) => name === ref.namedType)
  const atom = named ?? ref
  const relation = ref.elementRelationship
  const type: { -readonly [K in keyof Type]: Type[K] } = {}
  resolved.set(key, type)
  if (atom.scalar) type.scalar = atom.scalar
  if (atom.list) {
    const { elementType, elementRelationship, keys = [] } = atom.list
    type.list = {
      atomic: (relation ?? elementRelationship) === 'atomic',
      keys,
      element: typeOf(schemaRef, elementType),
    } satisfies ListType
  }
  if (atom.map) {
    const fields = new Map<string, Field>()
    for (const field of atom.map.fields ?? []) {
      fields.set(field.name, { type: typeOf(schemaRef, field.type), ...('default' in field ? { default: field.default } : {}) })
    }
    const element = atom.map.elementType ? typeOf(schemaRef, atom.map.elementType) : undefined
    type.map = { atomic: (relation ?? atom.map.elementRelationship) === 'atomic', fields, element } satisfies MapType
  }
  return type
}

const fieldsV1Of = (set: FieldSet) => atOnce(encodeFields(set))
const expectFields = (set: FieldSet, fields: unknown) => expect(fieldsV1Of(set)).toEqual(fieldsV1Of(decodeFields(fields)))

// Scenarios

interface Step {
  op: 'update' | 'apply' | 'forceApply' | 'extractThenForceApply' | 'changeSchema'
  manager: string
  apiVersion: string
  object: unknown
  schemaRef: string
  expect: {
    live?: unknown
    /** The object after the step in v6.3.2, which Kubernetes 1.36.2 uses, if it differs. */
    liveInV6_3_2?: unknown
    managers?: Record<string, { apiVersion: string; applied: boolean; fieldsV1: unknown }>
    conflicts?: { manager: string; field: { path: string[]; string: string } }[]
    conflictMessage?: string
    error?: string
  }
}
interface Case {
  name: string
  schemaRef: string
  type?: TypeRef
  typePerApiVersion?: string
  converter: string
  ignoreFilter?: Record<string, unknown>
  ignoredFields?: Record<string, unknown>
  steps: Step[]
}

/** Converters of values between versions, by the names that the scenarios use. */
const converters: Record<string, (value: unknown, from: string, to: string) => unknown> = {
  identity: (value) => value,
  renameVersionSuffix: (value, from, to) =>
    renameKeys(value, (key) => (key.endsWith(from) ? key.slice(0, -from.length) + to : key)),
  repeatLetters: (value, _, to) => repeatLetters(value, Number(to.slice(1))),
  requiredFieldRename(value, from, to) {
    if (from === to || !isRecord(value)) return value
    const [old, renamed] =
      from === 'v2' ? ['required_field_bar', 'field_foo_rely_on_bar'] : ['field_foo_rely_on_bar', 'required_field_bar']
    return renameKeys(value, (key) => (key === old ? renamed! : key))
  },
}

function renameKeys(value: unknown, rename: (key: string) => string): unknown {
  if (Array.isArray(value)) return value.map((item) => renameKeys(item, rename))
  if (!isRecord(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [rename(key), renameKeys(member, rename)]))
}

/** Replaces each key below the top level with its first letter, repeated `times` times. */
function repeatLetters(value: unknown, times: number, top = true): unknown {
  if (!isRecord(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, member]) => [top ? key : key[0]!.repeat(times), repeatLetters(member, times, false)]),
  )
}

/**
 * Runs the steps of a scenario, and compares the object and its managers with the expected ones after each step. A step with an expected
 * error is the last one; the object and its managers are not compared after it.
 */
function replay({ schemaRef, type, converter, ignoreFilter, ignoredFields, steps }: Case): void {
  let schema = schemaRef
  const typed = (value: unknown, apiVersion: string): Typed => ({
    apiVersion,
    type: typeOf(schema, type ?? { namedType: apiVersion }),
    value,
  })
  const isKnownVersion = (apiVersion: string) =>
    type !== undefined || schemas[schema]!.types.some(({ name }) => name === apiVersion)
  const ignored = ignoreFilter ?? ignoredFields ?? {}
  const versions = {
    convert: (object: Typed, apiVersion: string) =>
      isKnownVersion(apiVersion)
        ? typed(converters[converter]!(object.value, object.apiVersion, apiVersion), apiVersion)
        : undefined,
    ignored: (apiVersion: string) => (ignored[apiVersion] === undefined ? undefined : decodeFields(ignored[apiVersion])),
  }
  let live: Typed | undefined
  let managers: Managers = new Map()

  for (const step of steps) {
    const { op, manager, apiVersion, object, expect: expected } = step
    const act = () => {
      if (op === 'changeSchema') {
        schema = step.schemaRef
        live = live && typed(live.value, live.apiVersion)
        return
      }
      const before = live ? (versions.convert(live, apiVersion) ?? live) : typed(null, apiVersion)
      let config = typed(object, apiVersion)
      const problems = typeProblems(config.type, config.value, { allowDuplicates: op === 'update' })
      if (problems.length > 0) throw new Error(problems.join('\n'))
      if (op === 'update') {
        managers = atOnce(ownersAfterUpdate(before, config, managers, manager, versions))
        live = config
        return
      }
      if (op === 'extractThenForceApply') {
        const ownedFields = managers.get(manager)?.fields
        const extracted = ownedFields ? extractFields(before.type, before.value, leavesOf(ownedFields), { keepKeys: true }) : null
        config = { ...config, value: mergeTyped(config.type, extracted ?? undefined, object) }
      }
      const result = atOnce(applyConfig(before, config, managers, manager, versions, { force: op !== 'apply' }))
      managers = result.owners
      live = result.object ?? before
    }
    if (expected.error !== undefined) return expect(act).toThrow(expected.error)
    if (expected.conflicts) {
      expect(act).toThrow(ApplyConflicts)
      try {
        act()
      } catch (err) {
        const { conflicts, message } = err as ApplyConflicts
        const texts = conflicts.map(({ manager: other, path }) => `${other} ${pathText(path)}`)
        expect(texts.sort()).toEqual(expected.conflicts.map(({ manager: other, field }) => `${other} ${field.string}`).sort())
        if (expected.conflictMessage) expect(message).toBe(expected.conflictMessage)
      }
    } else act()
    const value = live?.value ?? null
    const isAsInV6_3_2 = 'liveInV6_3_2' in expected && equal(value, expected.liveInV6_3_2)
    // The reference implementation's converter for these scenarios turns empty maps and lists into null; ours does not.
    if (converter === 'repeatLetters') expect(emptyAsNull(value)).toEqual(expected.live)
    else if (!isAsInV6_3_2) expect(value).toEqual(expected.live)
    const owners = Object.fromEntries(
      [...managers].map(([name, { apiVersion: version, applied, fields }]) => [
        name,
        { apiVersion: version, applied, fieldsV1: fieldsV1Of(fields) },
      ]),
    )
    const expectedOwners = Object.fromEntries(
      Object.entries(expected.managers ?? {}).map(([name, owned]) => [
        name,
        { ...owned, fieldsV1: fieldsV1Of(decodeFields(owned.fieldsV1)) },
      ]),
    )
    expect(owners).toEqual(expectedOwners)
  }
}

function emptyAsNull(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Object.keys(value).length === 0) return null
  if (Array.isArray(value)) return value.map(emptyAsNull)
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, emptyAsNull(member)]))
}

for (const file of readdirSync(new URL('testdata/scenarios/', import.meta.url)).sort()) {
  const { group, cases } = read(`scenarios/${file}`) as { group: string; cases: Case[] }
  describe(group, () => {
    test.each(cases.map((scenario) => [scenario.name, scenario] as const))('%s', (_, scenario) => replay(scenario))
  })
}

// Units

const unitCases = (name: string): readonly (readonly [string, Record<string, any>])[] =>
  (read(`units/${name}.json`).cases as Record<string, any>[]).map((testCase) => [testCase.name as string, testCase])
const typeIn = ({ schemaRef, type }: Record<string, any>) => typeOf(schemaRef, type)

describe('merging two values', () => {
  test.each(unitCases('typed-merge'))('%s', (_, testCase) => {
    expect(mergeTyped(typeIn(testCase), testCase.lhs, testCase.rhs)).toEqual(testCase.out)
  })
})

describe('comparing two values', () => {
  test.each(unitCases('typed-compare'))('%s', (_, testCase) => {
    const { added, removed, modified } = atOnce(compareTyped(typeIn(testCase), testCase.lhs, testCase.rhs))
    expectFields(added, testCase.added)
    expectFields(removed, testCase.removed)
    expectFields(modified, testCase.modified)
  })
})

describe('the fields of a value', () => {
  test.each(unitCases('typed-toFieldSet'))('%s', (_, testCase) =>
    expectFields(fieldsOf(typeIn(testCase), testCase.object), testCase.fieldsV1),
  )
})

describe('removing and extracting fields', () => {
  test.each(unitCases('typed-removeExtract'))('%s', (_, testCase) => {
    const fields = decodeFields(testCase.fieldsV1)
    expect(extractFields(typeIn(testCase), testCase.object, fields)).toEqual(testCase.extracted)
    // A list or map that becomes empty is null in v6.4.2. It stays an empty list or map in Capstan, and in v6.3.2, which Kubernetes 1.36.2
    // uses.
    expect(emptyAsNull(removeFields(typeIn(testCase), testCase.object, fields))).toEqual(emptyAsNull(testCase.afterRemove))
  })
  test.each(unitCases('typed-reversibleExtract'))('%s', (_, testCase) => {
    const type = typeIn(testCase)
    const merged = mergeTyped(type, testCase.object, testCase.applied)
    expect(merged).toEqual(testCase.merged)
    const leaves = leavesOf(fieldsOf(type, testCase.applied))
    expectFields(leaves, testCase.appliedLeavesFieldsV1)
    expect(extractFields(type, merged, leaves)).toEqual(testCase.applied)
  })
  test.each(unitCases('typed-extractWithKeys'))('%s', (_, testCase) => {
    expect(extractFields(typeIn(testCase), testCase.object, decodeFields(testCase.fieldsV1), { keepKeys: true })).toEqual(
      testCase.extracted,
    )
  })
})

describe('checking a value against its type', () => {
  test.each(unitCases('typed-validate'))('%s', (_, testCase) => {
    expect(typeProblems(typeIn(testCase), testCase.object, { allowDuplicates: false }).length === 0).toBe(testCase.valid)
    expect(typeProblems(typeIn(testCase), testCase.object, { allowDuplicates: true }).length === 0).toBe(
      testCase.validAllowingDuplicates,
    )
  })
})

describe('field sets recorded under an older schema', () => {
  test.each(unitCases('typed-reconcileFieldSet'))('%s', (_, testCase) => {
    const old = decodeFields(testCase.oldFieldsV1)
    const fixed = adaptToType(typeIn(testCase), old)
    if (testCase.fixedFieldsV1 === null) expect(fixed).toBe(old)
    else expectFields(fixed, testCase.fixedFieldsV1)
  })
})

describe('set algebra', () => {
  test.each(unitCases('fieldset-algebra'))('%s', (_, testCase) => {
    const [a, b] = [decodeFields(testCase.a), decodeFields(testCase.b)]
    expectFields(union(a, b), testCase.union)
    expectFields(intersection(a, b), testCase.intersection)
    expectFields(difference(a, b), testCase.difference)
    expectFields(recursiveDifference(a, b), testCase.recursiveDifference)
    expectFields(leavesOf(a), testCase.leavesOfA)
    expect([sizeOf(a), sameSet(a, b)]).toEqual([testCase.sizeA, testCase.equal])
  })
})

describe('FieldsV1', () => {
  test.each(unitCases('fieldset-serialization'))('%s', (_, testCase) => {
    const decode = () => decodeFields(JSON.parse(testCase.input))
    if (testCase.error) return expect(decode).toThrow()
    const set = decode()
    expect(JSON.stringify(atOnce(encodeFields(set)))).toBe(testCase.normalized)
    expect(pathsOf(set).map(pathText).sort()).toEqual([...(testCase.memberPaths as string[])].sort())
    expect(sizeOf(set)).toBe(testCase.size)
  })
  test.each(unitCases('pathElement'))('%s', (_, testCase) => {
    const parse = () => parseElement(testCase.input)
    if (testCase.error) {
      let element: string | undefined
      try {
        element = parse()
      } catch {
        element = undefined
      }
      return expect(element).toBeUndefined()
    }
    const element = parse()!
    expect([element, elementText(element)]).toEqual([testCase.serialized, testCase.string])
  })
})
