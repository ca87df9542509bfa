import { expect, test } from 'vitest'
import { machineNamingErrors } from './machine-naming-admission.ts'

test.each([
  ['accepts an absent template', undefined, undefined],
  ['accepts a valid template', '{{ .cluster.name }}-{{ .machineSet.name }}-{{ .random }}', undefined],
  [
    'rejects a template that does not parse',
    '{{ .random }',
    'invalid template: parsing template "{{ .random }": template: template name generator:1: unexpected "}" in operand',
  ],
  [
    'rejects an unknown field',
    '{{ .machine }}-{{ .random }}',
    'invalid template: rendering template: template: template name generator:1:3: executing "template name generator" at <.machine>: map has no entry for key "machine"',
  ],
  [
    'rejects a template that generates invalid names',
    'A_{{ .random }}',
    'invalid template, generated names would not be valid Kubernetes object names: a lowercase RFC 1123 subdomain must consist of',
  ],
])('%s', (_, template, error) => {
  expect(machineNamingErrors(template).map(({ field, text }) => `${field}: ${text}`)).toEqual(
    error === undefined
      ? []
      : [expect.stringContaining(`spec.machineNaming.template: Invalid value: ${JSON.stringify(template)}: ${error}`)],
  )
})
