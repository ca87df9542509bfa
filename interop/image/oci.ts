/** Builds the image of `image/Dockerfile` with buildah, without an image registry, and runs containers of it with runc. */
import { execFile, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { messageOf } from '@capstan/kube'
import { type Architecture, architectures, downloadNode, imageContext } from '../../scripts/packages/image-context.ts'
import type { Program, Programs } from '../processes/programs.ts'
import { CannotRun } from '../shared/suite.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const execute = promisify(execFile)

/** Packages of the distribution that build images, run containers, and create the base image. */
const requiredPackages = ['buildah', 'runc', 'mmdebstrap']

/** System libraries that Node needs. */
const basePackages = ['libc6', 'libstdc++6', 'libgcc-s1']
const Debian = 'bookworm'

/** Returns the path of the base image, a tar archive, which is created once per machine and architecture. */
const baseRootOf = (architecture: Architecture): string =>
  join(
    process.env.CAPSTAN_TOOLS ?? join(homedir(), '.cache', 'capstan', 'tools'),
    `image-base-${Debian}-${architecture}`,
    'root.tar',
  )

/**
 * Installs missing packages, creates missing base images, and downloads Node for architectures without an installed Node. Each of these
 * needs a network.
 *
 * @throws CannotRun that names the missing packages, if they cannot be installed
 */
export async function installImageTools(): Promise<void> {
  const missing = requiredPackages.filter((name) => spawnSync(name, ['--version']).error !== undefined)
  if (missing.length > 0) await installPackages(missing)
  for (const architecture of architectures) await createBase(architecture)
  // Downloads Node now, because the suite runs without a network.
  downloadNode(architectures)
}

async function createBase(architecture: Architecture): Promise<void> {
  const baseRoot = baseRootOf(architecture)
  if (existsSync(baseRoot)) return
  mkdirSync(dirname(baseRoot), { recursive: true })
  const partialFile = `${baseRoot}.${process.pid}.tar`
  await execute('mmdebstrap', [
    '--quiet',
    `--architectures=${architecture}`,
    // Runs no program of the packages, so that this machine can create the base of another architecture.
    '--variant=extract',
    `--include=${basePackages.join(',')}`,
    '--dpkgopt=path-exclude=/usr/share/doc/*',
    Debian,
    partialFile,
  ])
  renameSync(partialFile, baseRoot)
}

async function installPackages(missing: readonly string[]): Promise<void> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0 || !existsSync('/usr/bin/apt-get'))
    throw new CannotRun(`${missing.join(', ')} missing: install them, or run this as root on Debian`)
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  try {
    await execute('apt-get', ['update'], { env })
    await execute('apt-get', ['install', '-y', '--no-install-recommends', ...missing], { env })
  } catch (err) {
    throw new CannotRun(`${missing.join(', ')} cannot be installed: ${messageOf(err)}`)
  }
}

/** A built image. */
export interface BuiltImage {
  /** Folder of its root file system. */
  readonly rootfs: string
  readonly config: ImageConfig
  readonly architecture: string
  /** Size of the image as a registry stores it, in bytes: compressed layers, configuration and manifest. */
  readonly packed: number
  /** Size of the files in the root file system, in bytes. */
  readonly unpacked: number
  /** Size of the base image, a tar archive, in bytes. */
  readonly base: number
}

/** Fields of the image specification of OCI. */
interface ImageConfig {
  readonly User: string
  readonly Entrypoint: readonly string[]
  readonly Env?: readonly string[]
  readonly Labels: Readonly<Record<string, string>>
}

/** The architecture of this machine, by its name in image platforms. */
export const ownArchitecture: Architecture = process.arch === 'arm64' ? 'arm64' : 'amd64'

/** Builds the image in `folder`, on a base made of the distribution's packages. */
export async function buildImage(folder: string, version: string, architecture: Architecture): Promise<BuiltImage> {
  const storage = join(folder, 'storage')
  const runRoot = join(folder, 'run')
  // Neither the storage driver `vfs` nor the isolation `chroot` below needs privileges.
  const store = ['--root', storage, '--runroot', runRoot, '--storage-driver', 'vfs']
  const buildah = async (command: string, ...args: string[]): Promise<string> => {
    const { stdout } = await execute('buildah', [...store, command, ...args], { maxBuffer: 1 << 24 })
    return stdout.trim()
  }
  mkdirSync(folder, { recursive: true })
  const baseImage = 'localhost/capstan-base'
  const image = 'localhost/capstan'
  const container = await buildah('from', 'scratch')
  await buildah('config', `--arch=${architecture}`, container)
  await buildah('add', '--quiet', container, baseRootOf(architecture), '/')
  await buildah('commit', '--quiet', '--rm', container, baseImage)

  const context = join(folder, 'context')
  await imageContext(context, [architecture])
  await buildah(
    'build',
    '--quiet',
    '--isolation=chroot',
    `--platform=linux/${architecture}`,
    `--build-arg=BASE=${baseImage}`,
    `--build-arg=VERSION=${version}`,
    '--build-arg=REVISION=test',
    `--file=${join(root, 'image', 'Dockerfile')}`,
    `--tag=${image}`,
    context,
  )
  const layout = join(folder, 'layout')
  await buildah('push', '--quiet', image, `oci:${layout}:latest`)
  const inspected = JSON.parse(await buildah('inspect', '--type=image', image)) as {
    OCIv1: { architecture: string; config: ImageConfig }
  }
  const mounted = await buildah('mount', await buildah('from', '--pull-never', image))
  const rootfs = join(folder, 'rootfs')
  await execute('cp', ['-a', mounted, rootfs])
  const builtImage = {
    rootfs,
    config: inspected.OCIv1.config,
    architecture: inspected.OCIv1.architecture,
    packed: sizeOf(join(layout, 'blobs')),
    unpacked: sizeOf(rootfs),
    base: statSync(baseRootOf(architecture)).size,
  }
  // From here on only `rootfs` is needed. The storage is large: each layer is a copy of the whole file system.
  for (const part of [storage, runRoot, context, layout]) rmSync(part, { recursive: true, force: true })
  return builtImage
}

function sizeOf(folder: string): number {
  let bytes = 0
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) bytes += statSync(join(entry.parentPath, entry.name)).size
  return bytes
}

/** Fields of a container's securityContext that `startContainer` applies. */
export interface SecurityContext {
  readonly runAsUser: number
  readonly runAsGroup: number
  readonly readOnlyRootFilesystem: boolean
  readonly allowPrivilegeEscalation: boolean
  readonly capabilities: { readonly drop: readonly string[] }
}

/** Options of `startContainer`. */
export interface ContainerOptions {
  readonly args: readonly string[]
  /** Replaces the entry point of the image. */
  readonly entrypoint?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly securityContext: SecurityContext
  /** Limit of memory in bytes; there is no swap. */
  readonly memoryLimit: number
  /** Folders of this machine by their path in the container; mounted read-only. */
  readonly mounts?: Readonly<Record<string, string>>
}

/** Starts a container with runc in the network of this process. runc forwards SIGTERM to the container. */
export async function startContainer(
  programs: Programs,
  name: string,
  image: BuiltImage,
  options: ContainerOptions,
): Promise<Container> {
  const bundle = join(programs.folder, 'containers', name)
  rmSync(bundle, { recursive: true, force: true })
  mkdirSync(bundle, { recursive: true })
  await execute('runc', ['spec'], { cwd: bundle })
  const spec = JSON.parse(readFileSync(join(bundle, 'config.json'), 'utf8')) as RuntimeSpec
  const { securityContext: security } = options
  if (!security.capabilities.drop.includes('ALL')) throw new Error('this suite runs only containers that drop all capabilities')
  const noCapabilities = Object.fromEntries(Object.keys(spec.process.capabilities).map((set) => [set, []]))
  writeFileSync(
    join(bundle, 'config.json'),
    JSON.stringify({
      ...spec,
      process: {
        ...spec.process,
        terminal: false,
        user: { uid: security.runAsUser, gid: security.runAsGroup },
        args: [...(options.entrypoint ?? image.config.Entrypoint), ...options.args],
        env: [...(image.config.Env ?? []), ...Object.entries(options.env ?? {}).map(([key, value]) => `${key}=${value}`)],
        cwd: '/',
        capabilities: noCapabilities,
        noNewPrivileges: !security.allowPrivilegeEscalation,
      },
      root: { path: image.rootfs, readonly: security.readOnlyRootFilesystem },
      mounts: [
        ...spec.mounts,
        ...Object.entries(options.mounts ?? {}).map(([destination, source]) => ({
          destination,
          source,
          type: 'bind',
          options: ['rbind', 'ro'],
        })),
      ],
      linux: {
        ...spec.linux,
        namespaces: spec.linux.namespaces.filter(({ type }) => type !== 'network'),
        resources: { ...spec.linux.resources, memory: { limit: options.memoryLimit, swap: options.memoryLimit } },
      },
    }),
  )
  const id = `capstan-${process.pid}-${name}`
  const state = ['--root', join(programs.folder, 'runc')]
  const program = programs.start(name, 'runc', [...state, 'run', '--bundle', bundle, id])
  return {
    program,
    async signal(signal) {
      await execute('runc', [...state, 'kill', id, signal])
    },
  }
}

/** A running container. */
export interface Container {
  /** Process of runc, which ends with the container, forwards SIGTERM to it, and prints its output. */
  readonly program: Program
  /** Signals the first process in the container. */
  signal(signal: 'SIGTERM' | 'SIGKILL'): Promise<void>
}

interface RuntimeSpec {
  readonly process: { readonly capabilities: object }
  readonly mounts: readonly object[]
  readonly linux: { readonly namespaces: readonly { readonly type: string }[]; readonly resources: object }
}
