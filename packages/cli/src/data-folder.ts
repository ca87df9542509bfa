/** Where `capstan up` keeps what must outlive it. */
import { resolve } from 'node:path'

export interface DataFolder {
  readonly path: string
  /** The durable store. */
  readonly database: string
  /** Certificates and keys of the API server, readable by the owner only. */
  readonly pki: string
  /** Access to the management API for kubectl. */
  readonly kubeconfig: string
  /** The port that was taken first, so that kubeconfigs stay valid. */
  readonly port: string
}

/** `.capstan` in the current folder unless told otherwise. */
export function dataFolder(path?: string): DataFolder {
  const base = resolve(path ?? '.capstan')
  return { path: base, database: `${base}/db`, pki: `${base}/pki`, kubeconfig: `${base}/kubeconfig`, port: `${base}/port` }
}
