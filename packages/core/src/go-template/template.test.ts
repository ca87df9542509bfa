import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { goTemplate } from './template.ts'

interface Case {
  template: string
  missingKey?: 'default' | 'error'
  text?: string
  error?: string
}

/** Reads templates with the output or error recorded from Go; the first line of the file contains the data for all templates. */
function recorded(file: string): { data: unknown; cases: Case[] } {
  const [first = '', ...lines] = readFileSync(new URL(`testdata/${file}`, import.meta.url), 'utf8')
    .trim()
    .split('\n')
  return { data: (JSON.parse(first) as { data: unknown }).data, cases: lines.map((line) => JSON.parse(line) as Case) }
}

function outcome(
  template: string,
  data: unknown,
  options: Parameters<typeof goTemplate>[2],
): { text: string } | { error: string } {
  try {
    return { text: goTemplate('t', template, options).render(data) }
  } catch (err) {
    return { error: (err as Error).message }
  }
}

describe('a template renders the text or fails with the error of Go 1.26', () => {
  const { data, cases } = recorded('go-text-template.jsonl')
  test.each(
    cases.map((testCase) => [`${testCase.template}${testCase.missingKey ? ' (missingkey=error)' : ''}`, testCase] as const),
  )('%s', (_, { template, missingKey = 'default', ...want }) => {
    expect(outcome(template, data, { missingKey, textFunctions: false })).toEqual(want)
  })
})

describe('a template with text functions renders the text or fails with the error of sprig v3.3', () => {
  const { data, cases } = recorded('sprig.jsonl')
  test.each(cases.map((testCase) => [testCase.template, testCase] as const))('%s', (_, { template, ...want }) => {
    expect(outcome(template, data, {})).toEqual(want)
  })
})

describe('an error contains', () => {
  test.each([
    [
      'the line and column, as Go computes them',
      'a\n  {{ .x.y }}',
      'template: t:2:7: executing "t" at <.x.y>: map has no entry for key "x"',
    ],
    [
      'the name of the called template',
      '{{define "in"}}\n{{.z}}{{end}}{{template "in" .}}',
      'template: t:2:2: executing "in" at <.z>: map has no entry for key "z"',
    ],
    ['the column in bytes', 'é{{.x}}', 'template: t:1:4: executing "t" at <.x>: map has no entry for key "x"'],
  ])('%s', (_, template, error) => {
    expect(outcome(template, {}, { missingKey: 'error' })).toEqual({ error })
  })
})

describe('a template fails when', () => {
  test.each([
    ['repeat returns a text that is too long', '{{ repeat 100000000 "abc" }}', 'text is larger than 1048576 bytes'],
    [
      'a loop doubles a text until it is too long',
      '{{ $x := "0123456789" }}{{ range until 40 }}{{ $x = print $x $x }}{{ end }}',
      'text is larger than 1048576 bytes',
    ],
    [
      'wrapWith repeats a long separator',
      '{{ wrapWith 1 (repeat 10000 "<br>") (repeat 10000 "a") }}',
      'text is larger than 1048576 bytes',
    ],
    [
      'the output has one byte too many in UTF-8',
      '{{ range until 32768 }}éééééééééééééééé{{ end }}x',
      'output is larger than 1048576 bytes',
    ],
    ['the output is too long', '{{ range until 100000 }}0123456789ABCDEF{{ end }}', 'output is larger than 1048576 bytes'],
    ['a list is too long', '{{ until 100000000 }}', 'list is longer than 100000'],
    [
      'deepCopy copies a list that contains another one twice, and so on',
      '{{ $x := list 1 }}{{ range until 100 }}{{ $x = list $x $x }}{{ end }}{{ deepCopy $x }}',
      'error calling deepCopy: copy contains more than 1000000 values',
    ],
    [
      'merge copies a list that contains another one twice, and so on',
      '{{ $x := list 1 }}{{ range until 100 }}{{ $x = list $x $x }}{{ end }}{{ merge (dict) (dict "x" $x) }}',
      'error calling merge: copy contains more than 1000000 values',
    ],
    [
      'nested loops take too many steps',
      '{{ range until 99999 }}{{ range until 99999 }}{{ end }}{{ end }}',
      'execution takes more than 1000000 steps',
    ],
    ['range over a number takes too many steps', '{{ range 9000000000 }}{{ end }}', 'execution takes more than 1000000 steps'],
    [
      'a template calls itself without end',
      '{{ define "r" }}{{ template "r" . }}{{ end }}{{ template "r" . }}',
      'exceeded maximum template depth (500)',
    ],
    ['parentheses are nested too deeply', `{{ ${'('.repeat(5000)}1${')'.repeat(5000)} }}`, 'max expression depth exceeded'],
    [
      'blocks are nested too deeply',
      `${Array.from({ length: 10_000 }, (_, index) => `{{ block "${index}" . }}`).join('')}${'{{ end }}'.repeat(10_000)}`,
      'max expression depth exceeded',
    ],
    [
      'regexReplaceAll returns a text that is too long',
      '{{ regexReplaceAll "a" (repeat 1000 "a") (repeat 10000 "b") }}',
      'error calling regexReplaceAll: text is larger than 1048576 bytes',
    ],
    [
      'printf pads numbers until the output is too long',
      '{{ range until 1000 }}{{ printf "%999999999d" 1 }}{{ end }}',
      'output is larger than 1048576 bytes',
    ],
  ])('%s', (_, template, error) => {
    expect(outcome(template, {}, {})).toEqual({ error: expect.stringContaining(error) })
  })
})

test('regexQuoteMeta has no variant with the prefix must, as in sprig', () => {
  expect(outcome('{{ regexQuoteMeta "1.2" }}', {}, {})).toEqual({ text: String.raw`1\.2` })
  expect(outcome('{{ mustRegexQuoteMeta "1.2" }}', {}, {})).toEqual({
    error: expect.stringContaining('function "mustRegexQuoteMeta" not defined'),
  })
})

test('properties that JavaScript objects inherit are missing keys, but a key __proto__ of a map is found', () => {
  expect(
    outcome('{{ .constructor }} {{ .toString }} {{ hasKey . "__proto__" }} {{ (dict "__proto__" 1).__proto__ }}', {}, {}),
  ).toEqual({
    text: '<no value> <no value> false 1',
  })
})

test('a function that changes a map does not change the data', () => {
  const data = Object.freeze({ labels: Object.freeze({ a: '1' }) })
  expect(outcome('{{ $_ := set .labels "b" "2" }}{{ .labels }}', data, {})).toEqual({ text: 'map[a:1 b:2]' })
  expect(data).toEqual({ labels: { a: '1' } })
})
