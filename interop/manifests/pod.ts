/**
 * Runs the container of a Deployment as a kubelet would: with its arguments, environment, address and, at the usual path, the token of its
 * ServiceAccount. The container is a process of the checkout, or a container of an image. Needs a separate network namespace, and the
 * permission to create mount namespaces.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Client, isRecord, type KubeObject } from '@capstan/kube'
import { type BuiltImage, type SecurityContext, startContainer } from '../image/oci.ts'
import type { RunningApiServer } from '../processes/api-server.ts'
import { answers, type Program, type Programs, ready } from '../processes/programs.ts'
import { CannotRun } from '../shared/suite.ts'

/** A Deployment of `capstan manifests`, with the fields that this file reads. */
export interface Deployment extends KubeObject {
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly serviceAccountName: string
        readonly containers: readonly [Container]
      }
    }
  }
}

interface Container {
  readonly args: readonly string[]
  readonly securityContext: SecurityContext
  readonly resources: { readonly limits: { readonly memory: string } }
  readonly env: readonly { readonly name: string; readonly valueFrom: { readonly fieldRef: { readonly fieldPath: string } } }[]
}

/** A started container of a Deployment, in place of a whole Pod. */
export interface Pod {
  readonly program: Program
  /** Sends SIGKILL, as when the Node fails. Resolves when the process has ended. */
  kill(): Promise<void>
  /** User name of the ServiceAccount, as in audit logs. */
  readonly user: string
  /** IP address of the pod. */
  readonly address: string
}

export interface PodOptions {
  readonly apiServer: RunningApiServer
  readonly programs: Programs
  readonly deployment: Deployment
  /** IP address that only this pod uses. */
  readonly address: string
  /** Arguments in addition to those of the Deployment. */
  readonly args?: readonly string[]
  /** Index of this replica, which ends the name of the pod. Default: 0. */
  readonly replica?: number
  /** Image to run in a container. Default: a process runs the checkout. */
  readonly image?: BuiltImage
  /** URL of the API server for this pod, if it differs from that of `apiServer`. */
  readonly server?: URL
  /** Folders to mount, by their path in the container. Mounted only with `image`. */
  readonly mounts?: Readonly<Record<string, string>>
}

const root = fileURLToPath(new URL('../..', import.meta.url))

/**
 * Shell script that replaces the content of /var/run with the files of the ServiceAccount in the folder `$1`, and executes the other
 * arguments as a command.
 */
const podScript = `run=$(readlink -f /var/run) && mount -t tmpfs tmpfs "$run" && mkdir -p "$run/secrets/kubernetes.io" &&
ln -s "$1" "$run/secrets/kubernetes.io/serviceaccount" && shift && exec "$@"`

/** Adds an address to the loopback interface. @throws CannotRun if the machine does not allow this, or allows no mount namespaces */
export function addAddress(address: string): void {
  const { status, stderr, error } = spawnSync('ip', ['address', 'add', `${address}/32`, 'dev', 'lo'], { encoding: 'utf8' })
  if (status !== 0) throw new CannotRun(`pods need a separate network namespace: ${error?.message ?? stderr.trim()}`)
  const mount = spawnSync('unshare', ['--mount', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt'], { encoding: 'utf8' })
  if (mount.status !== 0)
    throw new CannotRun(`pods need a separate mount namespace: ${mount.error?.message ?? mount.stderr.trim()}`)
}

/** Path of the files of the ServiceAccount in a container. */
const ServiceAccountFolder = '/var/run/secrets/kubernetes.io/serviceaccount'

/** Starts the container of a Deployment. Resolves when the manager is ready. */
export async function startPod(options: PodOptions): Promise<Pod> {
  const { apiServer, programs, deployment, address, replica = 0, image, mounts = {} } = options
  const { namespace = '', name } = deployment.metadata
  const { serviceAccountName, containers } = deployment.spec.template.spec
  const [container] = containers
  const podName = `${name}-${replica}`
  const folder = join(programs.folder, `${podName}-serviceaccount`)
  mkdirSync(folder, { recursive: true, mode: 0o755 })
  writeFileSync(join(folder, 'token'), await tokenOf(apiServer.client(), namespace, serviceAccountName))
  writeFileSync(join(folder, 'ca.crt'), apiServer.ca)
  writeFileSync(join(folder, 'namespace'), namespace)

  const fields: { readonly [path: string]: string } = {
    'metadata.namespace': namespace,
    'metadata.name': podName,
    'metadata.uid': '00000000-0000-4000-8000-000000000000',
    'status.podIP': address,
  }
  const variables = Object.fromEntries(container.env.map((envVar) => [envVar.name, fields[envVar.valueFrom.fieldRef.fieldPath]!]))
  const { hostname, port } = options.server ?? new URL(apiServer.url)
  const env = { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port, ...variables }
  // With the Deployment's arguments, the manager listens on every address. The pods of a suite share one network, so each listens only on
  // its own address.
  const args = [...container.args, ...(options.args ?? [])].map((arg) =>
    arg
      .replace(/\$\((\w+)\)/g, (_, variable: string) => variables[variable] ?? '')
      .replace(/=0\.0\.0\.0$/, `=${address}`)
      .replace(/=:(\d+)$/, `=${address}:$1`),
  )
  const startedContainer = image
    ? await startContainer(programs, podName, image, {
        args,
        env,
        securityContext: container.securityContext,
        memoryLimit: bytesOf(container.resources.limits.memory),
        mounts: { [ServiceAccountFolder]: folder, ...mounts },
      })
    : undefined
  const command = [process.execPath, join(root, 'packages/cli/bin/capstan.js'), ...args]
  const program =
    startedContainer?.program ??
    programs.start(podName, 'unshare', ['--mount', 'sh', '-c', podScript, 'pod', folder, ...command], {
      env: { PATH: process.env.PATH, ...env },
      cwd: root,
    })
  // The readiness probe sends the same request.
  await ready(program, () => answers(`http://${address}:9440/readyz`))
  return {
    program,
    user: `system:serviceaccount:${namespace}:${serviceAccountName}`,
    address,
    async kill() {
      if (startedContainer) await startedContainer.signal('SIGKILL')
      else await program.kill()
      while (program.ending === undefined) await new Promise((resolve) => void setTimeout(resolve, 20))
    },
  }
}

/** Returns the bytes of a memory quantity with the suffix Mi or Gi. */
function bytesOf(quantity: string): number {
  const [, number, unit = ''] = /^(\d+)(Mi|Gi)$/.exec(quantity) ?? []
  if (number === undefined) throw new Error(`memory ${quantity}: expected Mi or Gi`)
  return Number(number) * (unit === 'Gi' ? 1 << 30 : 1 << 20)
}

async function tokenOf({ transport }: Client, namespace: string, name: string): Promise<string> {
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 3600 } }
  const target = { group: '', version: 'v1', plural: 'serviceaccounts', namespace, name, subresource: 'token' }
  const response = await transport.send({ verb: 'create', ...target, body })
  if (!isRecord(response) || !isRecord(response.status) || typeof response.status.token !== 'string')
    throw new Error(`The server made no token for ${namespace}/${name}`)
  return response.status.token
}
