/** The port of a listener whose address is written into kubeconfigs: the same one after every restart. */
import { readFile, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Listener, ListenOptions } from '@capstan/apiserver'
import { listen } from '@capstan/apiserver'
import { messageOf } from '@capstan/kube'
import { makeFolder } from '@capstan/kube/node'

export interface SamePort {
  /** Wanted by the user. */
  readonly asked: number | undefined
  /** Remembers the port; absent: for as long as the process. */
  readonly file: string | undefined
  /** Taken at a first start when none was asked for; 0 is any that is free. */
  readonly usual?: number
  /** The flag that chooses another one, for the error. */
  readonly flag: string
}

/** Takes the port that was asked for or used before. @throws Error naming it when it is taken */
export async function listenOnSamePort(
  options: Omit<ListenOptions, 'port'>,
  { asked, file, usual = 0, flag }: SamePort,
): Promise<Listener> {
  const port = asked ?? (file === undefined ? undefined : await readPort(file)) ?? usual
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
