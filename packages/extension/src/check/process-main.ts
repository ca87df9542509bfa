/** Main of the process in which an extension is probed: receives one job and sends one reply. */
import { messageOf, systemClock } from '@capstan/kube'
import { extensionIn } from './extension-in.ts'
import type { ProbeJob, ProbeReply } from './other-process.ts'
import { probe } from './probe.ts'

process.once('message', (job: ProbeJob) => void runJob(job).then((reply) => process.send!(reply)))

async function runJob({ module, shiftMs, ...options }: ProbeJob): Promise<ProbeReply> {
  shiftTime(shiftMs)
  try {
    const extension = await extensionIn((await import(module)) as { [name: string]: unknown })
    return await probe(extension, { ...options, clock: systemClock })
  } catch (err) {
    return { problem: messageOf(err) }
  }
}

/** Shifts the time that `Date` returns by `ms` milliseconds. Does not affect timers. */
function shiftTime(ms: number): void {
  if (ms === 0) return
  const real = Date
  const now = (): number => real.now() + ms
  globalThis.Date = new Proxy(real, {
    apply: () => new real(now()).toString(),
    construct: (target, args, newTarget) => Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget) as object,
    get: (target, key, receiver) => (key === 'now' ? now : Reflect.get(target, key, receiver)),
  })
}
