import { hours } from '@capstan/kube'

/** Longest time for which responses of extensions are cached. Upstream caches responses of CanUpdateMachineSet for the same time. */
export const AnswerLifetime = hours(24)

/**
 * Drops responses that expired more than a day ago: their objects are gone, or the requests are not made any more. Times are
 * those of `Clock.elapsed`.
 */
export function forgetOldAnswers(responses: Map<string, { readonly expires: number }>, now: number): void {
  for (const [key, { expires }] of responses) if (expires > 0 && expires + AnswerLifetime < now) responses.delete(key)
}
