/** Starts a real Kubernetes API server: etcd, kube-apiserver and kube-controller-manager as processes on loopback. */
import { join } from 'node:path'
import { ConfigMap, ServiceAccount } from '@capstan/kube'
import { makeCredentials, type ApiServerOptions, type RunningApiServer, serve, serverFlags, withoutGiven } from './api-server.ts'
import { answers, freePorts, Programs, ready } from './programs.ts'
import { toolPaths } from '../shared/tools.ts'

export interface RealApiServerOptions extends ApiServerOptions {
  /**
   * Controllers of kube-controller-manager. If the list is empty, kube-controller-manager is not started. Default: controllers that
   * `capstan apiserver` runs, too.
   */
  readonly controllers?: readonly string[]
}

const defaultControllers = [
  'garbage-collector-controller',
  'namespace-controller',
  'serviceaccount-controller',
  'root-ca-certificate-publisher-controller',
  'clusterrole-aggregation-controller',
]

/** The user of kube-controller-manager. Its controllers use separate service accounts, as in clusters of kubeadm. */
const controllerUser = { name: 'system:kube-controller-manager' }

/**
 * Starts a real API server, after building its programs if necessary. Resolves when the API server is ready and the controllers have
 * created their objects in namespace `default`.
 */
export async function startRealApiServer(options: RealApiServerOptions = {}): Promise<RunningApiServer> {
  const { flags = [], users = [], durable = false, progress = () => {}, controllers = defaultControllers } = options
  const [etcd, apiserver, controllerManager] = await toolPaths('etcd', 'kube-apiserver', 'kube-controller-manager')
  const programs = new Programs('real-api-server')
  try {
    const { folder } = programs
    const credentials = await makeCredentials(folder, [...users, controllerUser])
    const { files } = credentials
    const [etcdPort = 0, peerPort = 0, port = 0, managerPort = 0] = await freePorts(4)
    const started = performance.now()
    const since = (from: number) => `${((performance.now() - from) / 1000).toFixed(1)} s`

    const etcdUrl = `http://127.0.0.1:${etcdPort}`
    const peerUrl = `http://127.0.0.1:${peerPort}`
    const etcdFlags = [
      `--data-dir=${join(folder, 'etcd')}`,
      `--listen-client-urls=${etcdUrl}`,
      `--advertise-client-urls=${etcdUrl}`,
      `--listen-peer-urls=${peerUrl}`,
      `--initial-advertise-peer-urls=${peerUrl}`,
      `--initial-cluster=default=${peerUrl}`,
      '--log-level=warn',
      ...(durable ? [] : ['--unsafe-no-fsync']),
    ]
    const startEtcd = async () => {
      const program = programs.start('etcd', etcd, etcdFlags, { disposable: true })
      await ready(program, () => answers(`${etcdUrl}/health`))
      return program
    }
    let etcdProgram = await startEtcd()
    progress(`etcd healthy after ${since(started)}`)

    const serverStarted = performance.now()
    const url = `https://127.0.0.1:${port}`
    const realServerFlags = [
      `--etcd-servers=${etcdUrl}`,
      // The Service "kubernetes" gets no endpoints, because kube-apiserver rejects the loopback address as an endpoint.
      '--advertise-address=127.0.0.1',
      '--endpoint-reconciler-type=none',
      '--allow-privileged=true',
    ]
    const apiServer = await serve(programs, credentials, {
      name: 'kubernetes',
      url,
      since: started,
      // etcd keeps the state while kube-apiserver restarts, also without fsync.
      isDurable: true,
      start: () =>
        programs.start(
          'apiserver',
          apiserver,
          [...withoutGiven(realServerFlags, flags), ...serverFlags(credentials, port, flags)],
          {
            disposable: true,
          },
        ),
    })
    progress(`kube-apiserver ready after ${since(serverStarted)}`)

    const startControllerManager = async () => {
      const manager = programs.start(
        'controller-manager',
        controllerManager,
        [
          `--kubeconfig=${apiServer.kubeconfigOf(controllerUser.name)}`,
          '--bind-address=127.0.0.1',
          `--secure-port=${managerPort}`,
          `--tls-cert-file=${files.serving}`,
          `--tls-private-key-file=${files.servingKey}`,
          `--controllers=${controllers.join(',')}`,
          '--leader-elect=false',
          '--use-service-account-credentials=true',
          `--root-ca-file=${files.ca}`,
          `--service-account-private-key-file=${files.signingKey}`,
        ],
        { disposable: true },
      )
      const client = apiServer.client()
      const key = { namespace: 'default' }
      await ready(manager, async () => {
        if (!(await answers(`https://127.0.0.1:${managerPort}/healthz`, { ca: apiServer.ca }))) return false
        if (controllers.includes('serviceaccount-controller')) await client.get(ServiceAccount, { ...key, name: 'default' })
        if (controllers.includes('root-ca-certificate-publisher-controller'))
          await client.get(ConfigMap, { ...key, name: 'kube-root-ca.crt' })
        return true
      })
      return manager
    }
    let managerProgram = controllers.length > 0 ? await startControllerManager() : undefined
    if (managerProgram) progress(`kube-controller-manager ready, all programs ready after ${since(started)}`)
    return {
      ...apiServer,
      async restartAll() {
        await managerProgram?.kill()
        await etcdProgram.kill()
        // kube-apiserver is killed before etcd is ready again, and then reads the state that etcd has recovered.
        const [recovered] = await Promise.all([startEtcd(), apiServer.restart()])
        etcdProgram = recovered
        if (managerProgram) managerProgram = await startControllerManager()
      },
    }
  } catch (err) {
    await programs[Symbol.asyncDispose]()
    throw err
  }
}
