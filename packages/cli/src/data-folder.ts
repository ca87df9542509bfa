/** The data folder of `capstan up`, `dev`, `backup` and `restore`. */
import { resolve } from 'node:path'
import type { Io } from './io.ts'

export interface DataFolder {
  readonly path: string
  /** Folder of the durable store. */
  readonly database: string
  /** Folder with the certificates and keys of the API server. Only the user who created it can read it. */
  readonly pki: string
  /** Kubeconfig file of the management cluster. */
  readonly kubeconfig: string
  /** File with the port of the last start. The next start without --port uses it again, so that kubeconfigs stay valid. */
  readonly port: string
  /** File with the pid and URL of the `capstan up` process that uses the folder. The error of a second process names both. */
  readonly owner: string
}

/** Returns the paths in the data folder `path`, by default `.capstan` in the working directory. */
export function dataFolder({ cwd }: Pick<Io, 'cwd'>, path?: string): DataFolder {
  const base = resolve(cwd, path ?? '.capstan')
  return {
    path: base,
    database: `${base}/db`,
    pki: `${base}/pki`,
    kubeconfig: `${base}/kubeconfig`,
    port: `${base}/port`,
    owner: `${base}/owner.json`,
  }
}
