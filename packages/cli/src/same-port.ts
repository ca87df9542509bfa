/** The port of a listener whose address is written into kubeconfigs: the same one after every restart. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Listener, ListenOptions } from '@capstan/apiserver'
import { listen } from '@capstan/apiserver'

export interface SamePort {
  /** Wanted by the user. */
  readonly asked: number | undefined
  /** Remembers the port; absent: for as long as the process. */
  readonly file: string | undefined
  /** Tried at a first start without a wish, before any that is free. */
  readonly usual?: number
}

/** Takes the port that was asked for or used before. @throws Error naming it when it is taken */
export async function listenOnSamePort(
  options: Omit<ListenOptions, 'port'>,
  { asked, file, usual = 0 }: SamePort,
): Promise<Listener> {
  const wanted = asked ?? (file === undefined ? undefined : await readPort(file))
  const on = (port: number) => listen({ ...options, port })
  const listener = wanted === undefined ? await on(usual).catch(() => on(0)) : await on(wanted)
  if (file !== undefined) {
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, `${listener.port}\n`)
  }
  return listener
}

async function readPort(path: string): Promise<number | undefined> {
  const text = await readFile(path, 'utf8').catch(() => undefined)
  return text === undefined ? undefined : Number(text.trim()) || undefined
}
