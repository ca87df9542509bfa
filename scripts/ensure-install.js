// Runs before `npm start`, `npm test` and `npm run check`: installs the packages of the lock file if they are missing. Plain JavaScript
// without dependencies: the first time, it runs before the installation, with the machine's own Node (20 or newer). The installation
// contains the Node that runs everything else, except on platforms without an npm package of Node, such as macOS. There the machine's Node
// must be new enough.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const lock = readFileSync(`${root}package-lock.json`)
const fingerprint = createHash('sha256').update(lock).update(process.platform).update(process.arch).digest('hex')
/** Oldest major version of Node that runs the sources. */
const oldestNode = 24
const marker = `${root}node_modules/.capstan-installed`

if (!isInstalled()) {
  console.error('Installing dependencies (npm ci) ...')
  const { status, error } = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: root,
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
  })
  if (status !== 0) {
    console.error(`Cannot install dependencies: npm ci ${error ? error.message : `ended with code ${status}`}`)
    process.exit(1)
  }
  writeFileSync(marker, fingerprint)
}

if (Number(process.versions.node.split('.')[0]) < oldestNode && !hasOwnNode()) {
  console.error(
    `Capstan needs Node ${oldestNode} or newer: this is v${process.versions.node}, and npm has no Node for ${process.platform}-${process.arch}. ` +
      `Install Node ${oldestNode} from https://nodejs.org, and run the command again.`,
  )
  process.exit(1)
}

/** Whether the installation contains a Node. If it does, npm runs scripts with this Node. */
function hasOwnNode() {
  return existsSync(`${root}node_modules/.bin/node${process.platform === 'win32' ? '.cmd' : ''}`)
}

function isInstalled() {
  // A developer's own `npm install` writes npm's copy of the lock file, but not our marker. Without the marker, the installation is
  // accepted if the copy has the versions of the lock file.
  if (existsSync(marker)) return readFileSync(marker, 'utf8') === fingerprint
  const npmMarker = `${root}node_modules/.package-lock.json`
  return existsSync(npmMarker) && sameVersions(JSON.parse(lock), JSON.parse(readFileSync(npmMarker, 'utf8')))
}

/** Whether each package of the lock file is installed in the same version; optional packages may be missing. */
function sameVersions(wanted, installed) {
  return Object.entries(wanted.packages).every(([path, entry]) => {
    if (path === '' || entry.link || !path.includes('node_modules/')) return true
    const found = installed.packages[path]
    return found ? found.version === entry.version : entry.optional === true
  })
}
