import { describe, expect, test } from 'vitest'
import { everything, labelSelector, matchesFields, nothing, parseFieldSelector, parseLabelSelector } from './selector.ts'

describe('label selectors', () => {
  test.each<[selector: string, labels: Record<string, string>, boolean]>([
    ['', {}, true],
    ['a=1', { a: '1' }, true],
    ['a==1', { a: '2' }, false],
    ['a=', { a: '' }, true],
    ['a!=1', {}, true],
    ['a!=1', { a: '1' }, false],
    ['a', { a: '' }, true],
    ['!a', { a: '' }, false],
    ['! a , b', { b: '' }, true],
    ['a in (1, 2)', { a: '2' }, true],
    ['a in (1,2)', {}, false],
    ['a in (,1)', { a: '' }, true],
    ['a notin (1,2)', { a: '3' }, true],
    ['a notin (1,2)', {}, true],
    ['in in (in,notin)', { in: 'notin' }, true],
    ['a>5', { a: '6' }, true],
    ['a>5', { a: 'six' }, false],
    ['a<5', { a: '-6' }, true],
    ['toString', {}, false],
    ['example.com/a=b,c', { 'example.com/a': 'b', c: '' }, true],
    ['a in ()', { a: '' }, true],
    ['a in ()', { a: 'b' }, false],
  ])('the selector "%s" matches %j: %s', (selector, labels, selected) => {
    expect(parseLabelSelector(selector).matches(labels)).toBe(selected)
  })

  test.each([
    ['a===b', "unable to parse requirement: found '=', expected: identifier"],
    ['a in b', "unable to parse requirement: found 'b' expected: '('"],
    ['a in (b', "unable to parse requirement: found '', expected: ',' or ')'"],
    ['l gt 1', "unable to parse requirement: found 'gt', expected: in, notin, =, ==, !=, gt, lt"],
    ['a>b', `unable to parse requirement: values[0]: Invalid value: "b": for 'Gt', 'Lt' operators, the value must be an integer`],
    ['a=b,', "found '', expected: identifier after ','"],
    ['a=b c', "found 'c', expected: ',' or 'end of string'"],
    ['=', "found '=', expected: !, identifier, or 'end of string'"],
    [
      '-x',
      `unable to parse requirement: <nil>: Invalid value: "-x": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
    ],
  ])('the selector "%s" is rejected with the error of a real server', (selector, message) => {
    expect(() => parseLabelSelector(selector)).toThrow(expect.objectContaining({ reason: 'BadRequest', message }))
  })

  test('the text of a selector has requirements sorted by key, and sorted values', () => {
    expect(parseLabelSelector('c notin (z, y),!b,a==1').text).toBe('a==1,!b,c notin (y,z)')
  })

  test('a label selector of a spec requires all of its labels and expressions', () => {
    const selector = labelSelector({
      matchLabels: { app: 'web' },
      matchExpressions: [{ key: 'tier', operator: 'NotIn', values: ['b', 'a'] }],
    })
    expect(selector.text).toBe('app=web,tier notin (a,b)')
    expect(selector.matches({ app: 'web', tier: 'c' })).toBe(true)
    expect([selector.matches({ app: 'web', tier: 'a' }), selector.matches({ tier: 'c' })]).toEqual([false, false])
  })

  test('an absent selector selects no object, an empty selector all objects', () => {
    expect([labelSelector(undefined), labelSelector({})]).toEqual([nothing, everything])
  })

  test('an expression with an unknown operator is rejected', () => {
    expect(() => labelSelector({ matchExpressions: [{ key: 'a', operator: 'Like' }] })).toThrow(
      '"Like" is not a valid label selector operator',
    )
  })
})

describe('field selectors', () => {
  const object: Record<string, string> = { 'metadata.name': 'a', 'spec.note': 'x,y=z' }
  test.each([
    ['', true],
    ['metadata.name=a', true],
    ['metadata.name==b', false],
    ['metadata.name!=b,metadata.name=a', true],
    ['spec.note=x\\,y\\=z', true],
    ['spec.none=', true],
  ])('the field selector "%s" matches the object: %s', (selector, selected) => {
    expect(matchesFields(parseFieldSelector(selector), (field) => object[field] ?? '')).toBe(selected)
  })

  test.each([
    ['metadata.name', "invalid selector: 'metadata.name'; can't understand 'metadata.name'"],
    ['a=b\\c', 'invalid field selector: invalid escape sequence: \\c'],
    ['a=b=c', 'invalid field selector: unescaped character in value: 61'],
  ])('the field selector "%s" is rejected', (selector, message) => expect(() => parseFieldSelector(selector)).toThrow(message))
})
