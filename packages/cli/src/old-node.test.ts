import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, test } from 'vitest'

const bin = fileURLToPath(new URL('../bin/', import.meta.url))
const root = mkdtempSync(join(tmpdir(), 'capstan-old-node-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

/**
 * Installs only `bin`, and returns the path of capstan.js. If `bundled` is given, a script with these shell commands replaces the Node.js
 * that comes with the installation.
 */
function install(name: string, bundled?: string): string {
  const folder = join(root, name)
  cpSync(bin, join(folder, 'bin'), { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  if (bundled !== undefined) {
    const node = join(folder, 'node_modules', `node-${process.platform}-${process.arch}`)
    mkdirSync(join(node, 'bin'), { recursive: true })
    writeFileSync(join(node, 'package.json'), '{}')
    writeFileSync(join(node, 'bin/node'), `#!/bin/sh\n${bundled}\n`)
    chmodSync(join(node, 'bin/node'), 0o755)
  }
  return join(folder, 'bin/capstan.js')
}

/** Runs a script in the Node.js of this test, which pretends to have the given version. */
function runAs(version: string, script: string, ...argv: string[]) {
  const pretend = join(root, 'pretend.cjs')
  const versions = `Object.defineProperty(process.versions, 'node', { value: '${version}' })`
  writeFileSync(pretend, `${versions}; Object.defineProperty(process, 'version', { value: 'v${version}' })`)
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--require', pretend, script, ...argv], { encoding: 'utf8' })
  return { code: status, out: stdout, err: stderr }
}

describe('a Node.js that is too old', () => {
  test('starts the Node.js that came with the installation, with all arguments', () => {
    const script = install('whole', 'echo "$@"; exit 7')
    expect(runAs('20.20.2', script, 'version', '-o', 'json')).toEqual({ code: 7, out: `${script} version -o json\n`, err: '' })
  })

  test('exits with 128 plus the number of the signal that ended the started Node.js', () => {
    expect(runAs('20.20.2', install('killed', 'kill -INT $$'), 'version').code).toBe(130)
  })

  test('prints the remedy when the installation has no Node.js', () => {
    const { code, out, err } = runAs('20.20.2', install('bare'), 'version')
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err).toBe(
      'capstan needs Node 24 or newer: this is v20.20.2, and none came with the installation. ' +
        'Install Node 24, or reinstall with optional dependencies (npm ci).\n',
    )
  })

  test('finds no static import in the entry file except node:module', () => {
    // Type syntax or a static import of sources would fail before the remedy can be printed.
    const text = readFileSync(join(bin, 'capstan.js'), 'utf8')
    expect(text.match(/^import .*/gm)).toEqual(["import module from 'node:module'"])
  })
})
