import { messageOf } from '@capstan/kube'

/** Calls the close functions one after another, even when some fail. @throws Error with the messages of all failures */
export async function closeAll(closing: readonly (() => Promise<void>)[]): Promise<void> {
  const failures: unknown[] = []
  for (const close of closing) await close().catch((err: unknown) => failures.push(err))
  if (failures.length > 0) throw new Error(`Cannot stop cleanly: ${failures.map(messageOf).join('; ')}`, { cause: failures[0] })
}
