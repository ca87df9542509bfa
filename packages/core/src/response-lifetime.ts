import { hours } from '@capstan/kube'

/**
 * Time for which responses of CanUpdateMachineSet are cached, as upstream. Also the time for which `dropExpiredResponses` keeps
 * responses of UpdateMachine after they have expired.
 */
export const ResponseLifetime = hours(24)

/**
 * Drops responses of UpdateMachine that expired more than `ResponseLifetime` ago: the Machine was deleted, or core does not send the request
 * any more.
 * Entries with `expires` 0 stay: they are calls in progress or failed calls. Times are milliseconds of `Clock.elapsed`.
 */
export function dropExpiredResponses(responses: Map<string, { readonly expires: number }>, now: number): void {
  for (const [key, { expires }] of responses) if (expires > 0 && expires + ResponseLifetime < now) responses.delete(key)
}
