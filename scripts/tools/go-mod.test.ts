import { expect, test } from 'vitest'
import { goMod } from './go-mod.ts'

const module = {
  name: 'kubernetes',
  version: 'v1.36.2',
  go: '1.26',
  requires: [{ path: 'k8s.io/kubernetes', version: 'v1.36.2' }],
  variables: {},
}

test('goMod replaces the modules that upstream requires in version v0.0.0, and no others, by their published release', () => {
  const upstream =
    'require (\n\tgithub.com/x/y v1.2.3\n\tk8s.io/api v0.0.0\n\tk8s.io/utils v0.0.0-2026\n\tk8s.io/kubectl v0.0.0\n)\n'
  expect(goMod({ ...module, staging: { of: 'k8s.io/kubernetes', version: 'v0.36.2' } }, upstream)).toBe(
    `module capstan.dev/tools/kubernetes
go 1.26.0
require k8s.io/kubernetes v1.36.2
replace k8s.io/api => k8s.io/api v0.36.2
replace k8s.io/kubectl => k8s.io/kubectl v0.36.2
`,
  )
})

test('goMod writes no replace directives for a module without `staging` and `replaces`', () => {
  expect(goMod(module, 'require k8s.io/api v0.0.0\n')).not.toContain('replace')
})

test('goMod writes a replace directive for each module in `replaces`', () => {
  expect(goMod({ ...module, replaces: { 'example.com/api': 'v1.2.3' } })).toContain(
    'replace example.com/api => example.com/api v1.2.3\n',
  )
})
