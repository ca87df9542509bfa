/**
 * `node scripts/tools/main.ts NAME...` prints the path of each program on stdout. Builds a program first if the cache does not contain it.
 * The cache is $CAPSTAN_TOOLS, or ~/.cache/capstan/tools.
 */
import { homedir } from 'node:os'
import { join } from 'node:path'
import { ensureTool, ToolError } from './build.ts'
import { components } from './components.ts'

const names = process.argv.slice(2)
const known = components.map(({ name }) => name).join(', ')

try {
  if (names.length === 0) throw new ToolError(`usage: node scripts/tools/main.ts NAME...\nEach NAME is one of ${known}`)
  const chosen = names.map((name) => {
    const component = components.find((c) => c.name === name)
    if (!component) throw new ToolError(`unknown program "${name}": expected one of ${known}`)
    return component
  })
  const options = {
    cache: process.env.CAPSTAN_TOOLS ?? join(homedir(), '.cache', 'capstan', 'tools'),
    env: process.env,
    progress: (line: string) => process.stderr.write(`${line}\n`),
  }
  for (const component of chosen) process.stdout.write(`${await ensureTool(component, options)}\n`)
} catch (err) {
  if (!(err instanceof ToolError)) throw err
  process.stderr.write(`${err.message}\n`)
  process.exitCode = 1
}
