import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

/** Where programs are that are not ours, in the order asked for; built now if the machine has them not. @throws naming what is missing */
export async function toolPaths<const Names extends readonly string[]>(...names: Names): Promise<{ [I in keyof Names]: string }> {
  const child = spawn(process.execPath, ['scripts/tools/main.ts', ...names], { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] })
  let out = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text
  })
  const code = await new Promise((resolve, reject) => child.on('error', reject).on('close', resolve))
  if (code !== 0) throw new Error(`scripts/tools could not build all of ${names.join(', ')}`)
  return out.trim().split('\n') as { [I in keyof Names]: string }
}
