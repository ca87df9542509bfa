#!/usr/bin/env node
// The first file of the command, in JavaScript that old versions of Node can run. If the running Node is too old for the
// sources, this file starts the Node that came with the installation.
import module from 'node:module'

const oldest = 24
const version = Number(process.versions.node.split('.')[0])

if (version >= oldest) {
  const { run } = await import('./run.js')
  await run('capstan.js', '../src/main.ts')
} else {
  const { spawn } = await import('node:child_process')
  const { constants } = await import('node:os')
  const node = bundledNode()
  if (!node) {
    console.error(
      `capstan needs Node ${oldest} or newer: this is ${process.version}, and none came with the installation. ` +
        `Install Node ${oldest}, or reinstall with optional dependencies (npm ci).`,
    )
    process.exit(1)
  }
  const child = spawn(node, [process.argv[1], ...process.argv.slice(2)], { stdio: 'inherit' })
  // The terminal sends Ctrl-C to the child too. SIGTERM and SIGHUP may be sent to this process only, so it forwards them.
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  process.on('SIGINT', () => {})
  child.on('exit', (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : (code ?? 1)))
}

function bundledNode() {
  const require = module.createRequire(import.meta.url)
  for (const name of [`node-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`, 'node']) {
    try {
      const manifest = require.resolve(`${name}/package.json`)
      return manifest.replace(/package\.json$/, process.platform === 'win32' ? 'bin/node.exe' : 'bin/node')
    } catch {
      // Not installed for this platform: try the next package.
    }
  }
  return undefined
}
