#!/usr/bin/env node
// The command's first file, in plain JavaScript for any Node. A Node that is too old to run the sources hands over to the one
// that came with the installation.
import { readFileSync } from 'node:fs'
import module from 'node:module'
import { fileURLToPath } from 'node:url'

const oldest = 24
const version = Number(process.versions.node.split('.')[0])

if (version >= oldest) {
  // From the second start on, sources need neither stripping nor compiling, nor do those of programs that this one starts.
  const { directory } = module.enableCompileCache?.() ?? {}
  if (directory) process.env.NODE_COMPILE_CACHE ??= directory
  // Our sources say exactly which file they import and what it is, and mean the same by a package of ours: that saves the loader a search,
  // and several looks at the file system, for each of a thousand imports.
  const sources = new URL('../../', import.meta.url).href
  const packages = new Map()
  module.registerHooks({
    resolve(name, context, next) {
      if (!context.parentURL?.startsWith(sources)) return next(name, context)
      if (name.startsWith('.') && name.endsWith('.ts'))
        return { url: beside(context.parentURL, name), format: 'module-typescript', shortCircuit: true }
      if (!name.startsWith('@capstan/')) return next(name, context)
      let found = packages.get(name)
      if (!found) packages.set(name, (found = { ...next(name, context), shortCircuit: true }))
      return found
    },
    load(url, context, next) {
      if (context.format !== 'module-typescript' || !url.startsWith(sources)) return next(url, context)
      return { source: readFileSync(fileURLToPath(url)), format: context.format, shortCircuit: true }
    },
  })
  await import('../src/main.ts')
} else {
  const { spawn } = await import('node:child_process')
  const node = bundledNode()
  if (!node) {
    console.error(
      `capstan needs Node ${oldest} or newer: this is ${process.version}, and none came with the installation. ` +
        `Install Node ${oldest}, or reinstall with optional dependencies (npm ci).`,
    )
    process.exit(1)
  }
  const child = spawn(node, [process.argv[1], ...process.argv.slice(2)], { stdio: 'inherit' })
  // Ctrl-C reaches the child by itself; what is sent to this process only is passed on.
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  process.on('SIGINT', () => {})
  child.on('exit', (code, signal) => process.exit(signal ? 1 : (code ?? 1)))
}

/** What `new URL` says of a plain path, in a third of the time. */
function beside(parent, name) {
  let end = parent.lastIndexOf('/')
  let from = name.startsWith('./') ? 2 : 0
  for (; name.startsWith('../', from); from += 3) end = parent.lastIndexOf('/', end - 1)
  return parent.slice(0, end + 1) + name.slice(from)
}

function bundledNode() {
  const require = module.createRequire(import.meta.url)
  for (const name of [`node-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`, 'node']) {
    try {
      const manifest = require.resolve(`${name}/package.json`)
      return manifest.replace(/package\.json$/, process.platform === 'win32' ? 'bin/node.exe' : 'bin/node')
    } catch {
      // Not installed for this platform: try the next one.
    }
  }
  return undefined
}
