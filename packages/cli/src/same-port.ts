/** Keeps the port of a listener across restarts, because kubeconfigs contain it. */
import { readFile, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Listener, ListenOptions } from '@capstan/apiserver'
import { listen } from '@capstan/apiserver'
import { messageOf } from '@capstan/kube'
import { makeFolder } from '@capstan/kube/node'

export interface SamePort {
  /** Port requested by the user. */
  readonly requested: number | undefined
  /** File that stores the port; without it, the port is not kept across restarts. */
  readonly file: string | undefined
  /** Port if none is requested and none is stored; 0 (default) selects a free port. */
  readonly usual?: number
  /** Flag that selects another port, for the error message. */
  readonly flag: string
}

/**
 * Listens on the requested port, otherwise on the port in `file`, otherwise on `usual`, and writes the port to `file`.
 *
 * @throws Error naming the port when it is in use
 */
export async function listenOnSamePort(
  options: Omit<ListenOptions, 'port'>,
  { requested, file, usual = 0, flag }: SamePort,
): Promise<Listener> {
  const port = requested ?? (file === undefined ? undefined : await readPort(file)) ?? usual
  const listener = await listen({ ...options, port }).catch((err: unknown) => {
    throw new Error(`${messageOf(err)}. Choose another with ${flag}, or any free one with ${flag} 0`, { cause: err })
  })
  if (file !== undefined) {
    await makeFolder(dirname(file))
    await writeFile(file, `${listener.port}\n`)
  }
  return listener
}

async function readPort(path: string): Promise<number | undefined> {
  const text = await readFile(path, 'utf8').catch(() => undefined)
  return text === undefined ? undefined : Number(text.trim()) || undefined
}
