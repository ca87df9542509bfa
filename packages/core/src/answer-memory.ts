import { hours } from '@capstan/kube'

/** Longest time for which responses of extensions are cached. Upstream caches responses of CanUpdateMachineSet as long. */
export const AnswerLifetime = hours(24)

/** Drops responses that expired more than a day ago: their objects are gone, or the requests are not made any more. */
export function forgetOldAnswers(answers: Map<string, { readonly until: number }>, now: number): void {
  for (const [key, { until }] of answers) if (until > 0 && until + AnswerLifetime < now) answers.delete(key)
}
