import { hours } from '@capstan/kube'

/** Longest time for which responses of extensions are cached. Upstream caches responses of CanUpdateMachineSet for the same time. */
export const ResponseLifetime = hours(24)

/**
 * Drops responses that expired more than a day ago: the object was deleted, or core does not send the request any more. Times are those of
 * `Clock.elapsed`.
 */
export function dropExpiredResponses(responses: Map<string, { readonly expires: number }>, now: number): void {
  for (const [key, { expires }] of responses) if (expires > 0 && expires + ResponseLifetime < now) responses.delete(key)
}
