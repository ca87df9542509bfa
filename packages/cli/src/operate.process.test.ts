/** The guide docs/guides/operate.md, from its first command to its last. It needs kubectl and curl. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, test } from 'vitest'
import { GuideRun, missingPrograms } from './test-guide.ts'

const folder = mkdtempSync(join(tmpdir(), 'capstan-guide-'))
const guide = new GuideRun(folder)
afterAll(() => {
  guide.kill()
  rmSync(folder, { recursive: true, force: true })
})

const missing = missingPrograms('kubectl', 'curl')

test.skipIf(missing.length > 0)(
  `the guide for operators of managers does what it says${missing.length > 0 ? ` (not run: there is no ${missing.join(', no ')})` : ''}`,
  { timeout: 180_000 },
  () => guide.run('operate.md'),
)
