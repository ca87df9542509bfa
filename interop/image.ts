/**
 * Builds the image of `image/Dockerfile` without an image registry, and runs it with an OCI runtime as the Deployments specify: user,
 * read-only root file system, no capabilities, memory limit. Two replicas of core and one of the local provider work on a real
 * kube-apiserver with the tokens of their ServiceAccounts.
 */
import { existsSync, globSync, mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { Lease, Namespace, systemClock } from '@capstan/kube'
import { issueCertificate } from '@capstan/kube/node'
import { type Architecture, architectures } from '../scripts/packages/image-context.ts'
import { rootManifest } from '../scripts/packages/manifests.ts'
import { Checks } from './processes/capstan-process.ts'
import {
  type BuiltImage,
  buildImage,
  type Container,
  installImageTools,
  ownArchitecture,
  type SecurityContext,
  startContainer,
} from './image/oci.ts'
import {
  createClass,
  createCluster,
  inventory,
  undeletedObjects,
  localProvider,
  remove,
  scale,
  type LifeContext,
  type DesiredState,
} from './life/life.ts'
import { configured, install, providers, routeTo } from './manifests/install.ts'
import { addAddress, type Deployment, type Pod, startPod } from './manifests/pod.ts'
import type { RunningApiServer } from './processes/api-server.ts'
import { Programs } from './processes/programs.ts'
import { progressSince } from './shared/progress.ts'
import { startRealApiServer } from './processes/real-api-server.ts'
import type { Suite } from './shared/suite.ts'
import { until } from './shared/until.ts'

const megabyte = 1_000_000
/** Maximum compressed size of the image in bytes. */
const MaxPacked = 120 * megabyte

const [core, local] = providers
const coreAddresses = [core.address, '10.1.0.3']
const lease = { namespace: core.namespace, name: 'controller-leader-election-capi' }

export const imageSuite: Suite = {
  shows: 'the image in containers configured as in the Deployments, against a real kube-apiserver',
  ci: true,
  tools: ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl'],
  ownNetwork: true,
  prepare: installImageTools,
  async run() {
    const checks = new Checks()
    for (const address of [...coreAddresses, local.address]) addAddress(address)
    await using programs = new Programs('image')
    const { version } = rootManifest()
    const image = await buildImage(join(programs.folder, 'image'), version, ownArchitecture)
    console.log(
      `image: ${Math.round(image.packed / megabyte)} MB compressed, ${Math.round(image.unpacked / megabyte)} MB unpacked, ` +
        `${Math.round(image.base / megabyte)} MB of them in the base image`,
    )
    checks.check(`the compressed image has at most ${MaxPacked / megabyte} MB`, image.packed <= MaxPacked, image.packed)
    checks.check('the image runs as an unprivileged user', image.config.User === '65532:65532', image.config.User)
    checks.check('the labels of the image name the version', image.config.Labels['org.opencontainers.image.version'] === version)
    const sbom = JSON.parse(readFileSync(join(image.rootfs, 'usr/share/doc/capstan/sbom.cdx.json'), 'utf8')) as {
      bomFormat: string
    }
    checks.check('the image contains its SBOM', sbom.bomFormat === 'CycloneDX')
    await checkContainer(programs, image, checks)
    for (const architecture of architectures) {
      if (architecture !== ownArchitecture) await checkOtherArchitecture(programs, version, architecture, checks)
    }

    await using apiServer = await startRealApiServer({
      progress: console.log,
      flags: ['--authorization-mode=Node,RBAC', '--enable-aggregator-routing=true'],
    })
    const pods: Pod[] = []
    try {
      await runLifecycle(apiServer, programs, image, pods, checks)
    } catch (err) {
      for (const { program } of pods) console.log(`--- ${program.name} ${program.ending ?? ''}\n${program.tail(40)}`)
      throw err
    } finally {
      for (const pod of pods) if (pod.program.ending === undefined) await pod.program.stop()
    }
    return checks
  },
}

/**
 * Builds the image for an architecture that this machine cannot run. Checks the size of the image, the architecture that it names,
 * and the architecture of Node and of the C and C++ libraries that Node needs.
 */
async function checkOtherArchitecture(
  programs: Programs,
  version: string,
  architecture: Architecture,
  checks: Checks,
): Promise<void> {
  const image = await buildImage(join(programs.folder, architecture), version, architecture)
  checks.check(`the image of ${architecture} names its architecture`, image.architecture === architecture, image.architecture)
  checks.check(
    `the compressed image of ${architecture} has at most ${MaxPacked / megabyte} MB`,
    image.packed <= MaxPacked,
    image.packed,
  )
  const libraries = globSync('{lib,usr/lib}/*/{libc.so.6,libstdc++.so.6}', { cwd: image.rootfs })
  const machines = ['usr/local/bin/node', ...libraries].map((file) => elfMachineOf(join(image.rootfs, file)))
  checks.check(
    `Node and the C and C++ libraries in the image of ${architecture} are of this architecture`,
    libraries.length >= 2 && machines.every((machine) => machine === elfMachines[architecture]),
    machines,
  )
}

/** Values of `e_machine` in the header of an ELF file. */
const elfMachines = { amd64: 0x3e, arm64: 0xb7 } as const satisfies Record<Architecture, number>
const elfMachineOf = (file: string): number => readFileSync(file).readUInt16LE(18)

/**
 * Checks that a container has the user of its securityContext, no capabilities and a read-only root file system, that it fails when it
 * exceeds its memory limit, and that `capstan --version` prints the version.
 */
async function checkContainer(programs: Programs, image: BuiltImage, checks: Checks): Promise<void> {
  const securityContext: SecurityContext = {
    runAsUser: 65532,
    runAsGroup: 65532,
    readOnlyRootFilesystem: true,
    allowPrivilegeEscalation: false,
    capabilities: { drop: ['ALL'] },
  }
  const ended = async ({ program }: Container) => {
    while (program.ending === undefined) await new Promise((resolve) => void setTimeout(resolve, 50))
    return { ending: program.ending, text: program.tail(5).trim() }
  }
  const run = async (name: string, script: string, memoryLimit: number) =>
    ended(
      await startContainer(programs, name, image, {
        entrypoint: ['/usr/local/bin/node', '-e'],
        args: [script],
        securityContext,
        memoryLimit,
      }),
    )
  const state = `const { readFileSync: read, writeFileSync: write } = require('node:fs')
let refused = ''
try { write('/capstan/x', '') } catch (err) { refused = err.code }
console.log([process.getuid(), refused, /CapEff:\\s*0+$/m.test(read('/proc/self/status', 'utf8'))].join(' '))`
  const printed = await run('state', state, 256 << 20)
  checks.check(
    'a container has the user of its securityContext, no capabilities and a read-only root',
    printed.text === '65532 EROFS true',
    printed,
  )
  const greedy = await run('greedy', 'const all = []; for (;;) all.push(Buffer.alloc(1 << 20, 1))', 64 << 20)
  checks.check('a container that exceeds its memory limit fails', greedy.ending !== 'ended with code 0', greedy)
  const printedVersion = await ended(
    await startContainer(programs, 'version', image, { args: ['--version'], securityContext, memoryLimit: 256 << 20 }),
  )
  checks.check('capstan --version prints the version', printedVersion.text === rootManifest().version, printedVersion)
}

async function runLifecycle(
  apiServer: RunningApiServer,
  programs: Programs,
  image: BuiltImage,
  pods: Pod[],
  checks: Checks,
): Promise<void> {
  const progress = progressSince()
  const client = apiServer.client()
  const coreDeployment = await install(apiServer, programs, core, { addresses: coreAddresses, flags: ['--replicas', '2'] })
  // The local provider reads its serving certificate from files, as from a mounted Secret of cert-manager.
  const localDeployment = await install(apiServer, programs, local)
  const certificates = new MountedCertificates(apiServer, join(programs.folder, 'serving-certs'))
  await certificates.renew()
  const start = async (
    deployment: Deployment,
    options: { address: string; replica?: number; mounts?: Record<string, string> },
  ) => {
    const pod = await startPod({ apiServer, programs, deployment, image, ...options })
    pods.push(pod)
    return pod
  }
  const replicas = [await start(coreDeployment, { address: coreAddresses[0]! })]
  replicas.push(await start(coreDeployment, { address: coreAddresses[1]!, replica: 1 }))
  await start(withCertificateFiles(localDeployment), {
    address: local.address,
    mounts: { [CertificateFolder]: certificates.folder },
  })
  await configured(client)
  progress('two replicas of core and one of local run in containers')

  const namespace = 'team'
  await client.create(Namespace, { metadata: { name: namespace } })
  const context: LifeContext = { client, namespace, provider: localProvider, checks, progress, limit: 120 }
  await createClass(context)
  const before = await inventory(context)
  const first: DesiredState = { version: 'v1.33.0', controlPlane: 1, workers: 2 }
  await createCluster(context, 'classy', first)
  progress('a cluster is Available')

  const oldSerial = await serialAt(local.address)
  await certificates.renew()
  await waitUntil(async () => (await serialAt(local.address)) !== oldSerial)
  progress('a renewed serving certificate is served')
  checks.check('a renewed serving certificate is served without a restart', true)

  const leader = async () => (await client.get(Lease, lease)).spec?.holderIdentity ?? ''
  const replaceLeader = async (cause: string, act: () => Promise<void>): Promise<void> => {
    const oldLeader = await leader()
    const lostAt = performance.now()
    await act()
    await until(client, Lease, `another leader after ${cause}`, (all) =>
      all.some(({ metadata, spec }) => {
        const holder = spec?.holderIdentity ?? ''
        return metadata.name === lease.name && holder !== '' && holder !== oldLeader
      }),
    )
    progress(`${cause}: another leader after ${((performance.now() - lostAt) / 1000).toFixed(1)} s`)
  }

  // The first replica was ready first, and leads.
  const second = { ...first, workers: 3 }
  await replaceLeader('SIGTERM to the leader', async () => {
    await replicas[0]!.program.stop()
    await routeTo(client, core, coreAddresses.slice(1))
    checks.check(
      'SIGTERM ends a manager cleanly',
      replicas[0]!.program.ending === 'ended with code 0',
      replicas[0]!.program.ending,
    )
  })
  await scale(context, 'classy', second)
  progress('scaled by the other replica')
  replicas[0] = await start(coreDeployment, { address: coreAddresses[0]!, replica: 2 })
  await routeTo(client, core, coreAddresses.slice(0, 1))
  await replaceLeader('kill -9 of the leader', () => replicas[1]!.kill())
  await scale(context, 'classy', { ...second, workers: 1 })
  progress('scaled again')
  await remove(context, 'classy')
  const undeleted = await undeletedObjects(context, before)
  checks.check('all objects of a deleted Cluster are deleted', undeleted.length === 0, undeleted)
  checks.check(
    'the replica of core started last is running',
    replicas[0].program.ending === undefined,
    replicas[0].program.ending,
  )
}

/** Folder in which the manifests for cert-manager mount the Secret with the serving certificate. */
const CertificateFolder = '/tmp/k8s-webhook-server/serving-certs'

/** Returns the Deployment with the arguments that `capstan manifests --certificates cert-manager` gives to the manager. */
function withCertificateFiles(deployment: Deployment): Deployment {
  const { template } = deployment.spec
  const [container] = template.spec.containers
  const args = container.args.map((arg) =>
    arg.startsWith('--webhook-cert-secret=') ? `--webhook-cert-dir=${CertificateFolder}` : arg,
  )
  return {
    ...deployment,
    spec: { ...deployment.spec, template: { ...template, spec: { ...template.spec, containers: [{ ...container, args }] } } },
  } as Deployment
}

/**
 * Simulates a mounted Secret with a serving certificate. As the kubelet does, `renew` replaces a symbolic link to the folder of the files, so
 * that all files change at the same time.
 */
class MountedCertificates {
  readonly folder: string
  readonly #apiServer: RunningApiServer
  #generation = 0

  constructor(apiServer: RunningApiServer, folder: string) {
    this.#apiServer = apiServer
    this.folder = folder
    mkdirSync(folder)
  }

  async renew(): Promise<void> {
    const host = `${local.service}.${local.namespace}.svc`
    const { certificate, key } = await issueCertificate(this.#apiServer.authority, systemClock, {
      commonName: host,
      usages: ['server'],
      dnsNames: [host],
    })
    const generation = `..${++this.#generation}`
    mkdirSync(join(this.folder, generation))
    const files = { 'ca.crt': this.#apiServer.ca, 'tls.crt': certificate, 'tls.key': key }
    for (const [name, text] of Object.entries(files)) writeFileSync(join(this.folder, generation, name), text)
    symlinkSync(generation, join(this.folder, '..new'))
    renameSync(join(this.folder, '..new'), join(this.folder, '..data'))
    for (const name of Object.keys(files))
      if (!existsSync(join(this.folder, name))) symlinkSync(join('..data', name), join(this.folder, name))
  }
}

/** Returns the serial number of the serving certificate of webhooks at this address. */
const serialAt = (host: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host, port: 9443, rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().serialNumber)
      socket.destroy()
    })
    socket.once('error', reject)
  })

/** Waits until a condition is true. @throws Error after a minute */
async function waitUntil(isReached: () => Promise<boolean>): Promise<void> {
  for (const end = performance.now() + 60_000; performance.now() < end; ) {
    if (await isReached()) return
    await new Promise((resolve) => void setTimeout(resolve, 200))
  }
  throw new Error('The condition was not true within a minute')
}
