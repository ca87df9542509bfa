/**
 * `npm run image -- --base IMAGE@sha256:…`: builds the container image of the `capstan` command, by default for amd64 and arm64
 * (image/README.md). Writes the build context to build/image: the published command, its dependencies in the versions of
 * package-lock.json, Node from its npm packages, and the SBOM. Then runs docker, or the program of `--builder`, unless
 * `--context-only` is present.
 */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { messageOf } from '@capstan/kube'
import { architectures, type Architecture, imageContext } from './packages/image-context.ts'
import { root, rootManifest } from './packages/manifests.ts'

const { values: options } = parseArgs({
  options: {
    base: { type: 'string' },
    tag: { type: 'string' },
    platforms: { type: 'string', default: architectures.join(',') },
    builder: { type: 'string', default: 'docker' },
    'context-only': { type: 'boolean', default: false },
  },
})
const platforms = options.platforms.split(',')
const unknown = platforms.filter((name) => !architectures.includes(name as Architecture))
if (unknown.length > 0)
  fail(`--platforms ${options.platforms}: unknown ${unknown.join(', ')}; expected ${architectures.join(', ')}`)
if (!options['context-only'] && !/@sha256:[0-9a-f]{64}$/.test(options.base ?? ''))
  fail('--base must name the base image by digest, as IMAGE@sha256:…, because a tag can move to another image')

const { version } = rootManifest()
const context = join(root, 'build', 'image')
try {
  await imageContext(context, platforms as Architecture[])
} catch (err) {
  fail(messageOf(err))
}
console.log(`context: ${context}`)
if (!options['context-only']) {
  const revision = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: root, encoding: 'utf8' }).trim()
  const args = [
    ...(options.builder === 'docker' ? ['buildx', 'build'] : ['build']),
    `--platform=${platforms.map((name) => `linux/${name}`).join(',')}`,
    `--build-arg=BASE=${options.base}`,
    `--build-arg=VERSION=${version}`,
    `--build-arg=REVISION=${revision}`,
    `--file=${join(root, 'image', 'Dockerfile')}`,
    // For images of several platforms buildah needs --manifest, docker --tag.
    `--${options.builder === 'buildah' && platforms.length > 1 ? 'manifest' : 'tag'}=${options.tag ?? `capstan:v${version}`}`,
    context,
  ]
  console.log(`${options.builder} ${args.join(' ')}`)
  execFileSync(options.builder, args, { stdio: 'inherit' })
}

function fail(reason: string): never {
  console.error(reason)
  process.exit(1)
}
