import { type Client, type Kind, keyOf, keyText, type KubeObject, systemClock, systemRandom, watchObjects } from '@capstan/kube'

export interface UntilOptions {
  /** Default: all namespaces. */
  readonly namespace?: string
  /** Time limit in seconds. Default: 60. */
  readonly seconds?: number
}

/**
 * Watches the objects of a kind until they fulfil the condition `isReached`, and returns them.
 *
 * @throws Error with `description` and the objects if they do not fulfil the condition within the time limit
 */
export async function until<T extends KubeObject>(
  client: Client,
  kind: Kind<T>,
  description: string,
  isReached: (objects: T[]) => boolean,
  { seconds = 60, ...selection }: UntilOptions = {},
): Promise<T[]> {
  const objects = new Map<string, T>()
  const done = new AbortController()
  const signal = AbortSignal.any([done.signal, AbortSignal.timeout(seconds * 1000)])
  try {
    for await (const event of watchObjects(client, kind, { clock: systemClock, random: systemRandom, signal, ...selection })) {
      if (event.kind === 'replaced') {
        objects.clear()
        for (const object of event.objects) objects.set(keyText(keyOf(object)), object)
      } else if (event.kind === 'applied') objects.set(keyText(keyOf(event.object)), event.object)
      else if (event.kind === 'deleted') objects.delete(keyText(keyOf(event.object)))
      if (event.kind !== 'progress' && isReached([...objects.values()])) return [...objects.values()]
    }
  } finally {
    done.abort()
  }
  const lastObjects = [...objects.values()].map(({ metadata, ...rest }) => ({ name: metadata.name, ...rest }))
  throw new Error(`Waited ${seconds} s for: ${description}. Objects: ${JSON.stringify(lastObjects)}`)
}
