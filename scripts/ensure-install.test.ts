import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'

const root = mkdtempSync(join(tmpdir(), 'capstan-ensure-install-'))
afterEach(() => rmSync(root, { recursive: true, force: true }))

/**
 * Runs ensure-install.js in a checkout whose packages are installed. `node` is the version of Node that the script sees; `ownNode` is whether
 * the installation contains a Node.
 */
function run(node: string, { ownNode }: { ownNode: boolean }) {
  const lock = '{ "packages": {} }'
  for (const folder of ['scripts', 'node_modules/.bin']) mkdirSync(join(root, folder), { recursive: true })
  copyFileSync(join(import.meta.dirname, 'ensure-install.js'), join(root, 'scripts/ensure-install.js'))
  writeFileSync(join(root, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(root, 'package-lock.json'), lock)
  const fingerprint = createHash('sha256').update(lock).update(process.platform).update(process.arch).digest('hex')
  writeFileSync(join(root, 'node_modules/.capstan-installed'), fingerprint)
  if (ownNode) for (const name of ['node', 'node.cmd']) writeFileSync(join(root, 'node_modules/.bin', name), '')
  const versionModule = `data:text/javascript,Object.defineProperty(process,'versions',{value:{...process.versions,node:'${node}'}})`
  const { status, stderr } = spawnSync(process.execPath, ['--import', versionModule, join(root, 'scripts/ensure-install.js')], {
    encoding: 'utf8',
  })
  return { status, stderr }
}

test('ensure-install.js fails and names the required version of Node when the running Node is too old and the installation contains none', () => {
  const { status, stderr } = run('20.19.0', { ownNode: false })
  expect(status).toBe(1)
  expect(stderr).toMatch(/^Capstan needs Node 24 or newer: this is v20\.19\.0, and npm has no Node for \S+\. Install Node 24 /)
})

test.each([
  ['the running Node is new enough', '24.0.0', false],
  ['the installation contains a Node', '20.19.0', true],
])('ensure-install.js succeeds when %s', (_, node, ownNode) => expect(run(node, { ownNode })).toEqual({ status: 0, stderr: '' }))
