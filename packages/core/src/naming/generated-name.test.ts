import { seededRandom } from '@capstan/kube'
import { describe, expect, test } from 'vitest'
import { nameFromTemplate, simpleName } from './generated-name.ts'

const data = { cluster: { name: 'demo' }, machineSet: { name: 'demo-md-0' } }
const long = 'x'.repeat(80)

describe('nameFromTemplate()', () => {
  test.each([
    ['the default template', '{{ .machineSet.name }}-{{ .random }}', data, /^demo-md-0-[b-z2-9]{5}$/],
    ['a name without random characters', '{{ .cluster.name }}-worker', data, /^demo-worker$/],
    ['a name of the maximum length', `${'y'.repeat(57)}-{{ .random }}`, data, /^y{57}-[b-z2-9]{5}$/],
    [
      'a longer name, truncated and with five random characters at its end',
      '{{ .cluster.name }}-{{ .random }}',
      { cluster: { name: long } },
      /^x{58}[b-z2-9]{5}$/,
    ],
  ])('renders %s', (_, template, values, name) => {
    expect(nameFromTemplate(template, values, seededRandom(1))).toMatch(name)
  })

  test.each([
    [
      'an unknown field',
      '{{ .machine.name }}',
      'rendering template: template: template name generator:1:11: executing "template name generator" at <.machine.name>: map has no entry for key "machine"',
    ],
    [
      'an action that is not closed',
      '{{ .cluster.name',
      'parsing template "{{ .cluster.name": template: template name generator:1: unclosed action',
    ],
    [
      'an unknown function',
      '{{ upper .cluster.name }}',
      'parsing template "{{ upper .cluster.name }}": template: template name generator:1: function "upper" not defined',
    ],
  ])('rejects %s', (_, template, error) => {
    expect(() => nameFromTemplate(template, data, seededRandom(1))).toThrow(error)
  })
})

test('simpleName() keeps at most 58 characters of the base', () => {
  expect(simpleName(`${long}-`, seededRandom(1))).toMatch(/^x{58}[b-z2-9]{5}$/)
  expect(simpleName('demo-', seededRandom(1))).toMatch(/^demo-[b-z2-9]{5}$/)
})
