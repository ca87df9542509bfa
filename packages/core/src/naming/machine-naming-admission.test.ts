import { expect, test } from 'vitest'
import { machineNamingErrors } from './machine-naming-admission.ts'

test.each([
  ['absent', undefined, undefined],
  ['good', '{{ .cluster.name }}-{{ .machineSet.name }}-{{ .random }}', undefined],
  [
    'no template',
    '{{ .random }',
    'invalid template: parsing template "{{ .random }": template: template name generator:1: unexpected "}" in operand',
  ],
  [
    'unknown value',
    '{{ .machine }}-{{ .random }}',
    'invalid template: rendering template: template: template name generator:1:3: executing "template name generator" at <.machine>: map has no entry for key "machine"',
  ],
  [
    'no name',
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
