import { globSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { folderCycles, layers, violations } from './layers.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

test('packages import only those packages of the checkout that `layers` allows, and follow the other rules of `violations`', () => {
  expect(violations(root)).toEqual([])
})

test('layers names every package, and nothing else', () => {
  const packages = globSync('packages/*/package.json', { cwd: root }).map((path) => path.split('/')[1]!)
  expect(Object.keys(layers).sort()).toEqual(packages.sort())
})

test('core and local may not import each other', () => {
  expect(layers.core).not.toContain('local')
  expect(layers.local).not.toContain('core')
})

test('the generic API server may import only kube, and the built-in kinds only kube and the generic API server', () => {
  expect(layers.apiserver).toEqual(['kube'])
  expect(layers['kubernetes-kinds']).toEqual(['kube', 'apiserver'])
})

test('folderCycles finds no import cycle between folders of the package apiserver', () => {
  expect(folderCycles(root)).toEqual([])
})

test('folderCycles finds import cycles between folders of src and between their subfolders; files of a folder of src and its subfolders may import each other', () => {
  const checkout = mkdtempSync(join(tmpdir(), 'capstan-layers-'))
  const sources = {
    'verbs/write.ts': "import './steps/decode.ts'",
    'verbs/steps/decode.ts': "import '../write.ts'\nimport '../subresources/scale.ts'",
    'verbs/subresources/scale.ts': "import '../steps/decode.ts'",
    'server.ts': "import './verbs/write.ts'",
    'verbs/engine.ts': "import '../server.ts'",
  }
  try {
    for (const [name, source] of Object.entries(sources)) {
      const file = join(checkout, 'packages/apiserver/src', name)
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, source)
    }
    expect(folderCycles(checkout)).toEqual([
      'apiserver: . → verbs → . (server.ts imports verbs/write.ts; verbs/engine.ts imports server.ts)',
      'apiserver: verbs/steps → verbs/subresources → verbs/steps (verbs/steps/decode.ts imports verbs/subresources/scale.ts; verbs/subresources/scale.ts imports verbs/steps/decode.ts)',
    ])
  } finally {
    rmSync(checkout, { recursive: true })
  }
})
