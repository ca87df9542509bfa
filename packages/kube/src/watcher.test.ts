import { expect, test } from 'vitest'
import type { ApiRequest, Transport, WatchEvent } from './client.ts'
import { createClient } from './client.ts'
import { seconds, VirtualClock } from './clock.ts'
import { StatusError } from './errors.ts'
import { unknownKind } from './kind.ts'
import { seededRandom } from './random.ts'
import type { WatcherInput, WatcherState } from './watcher.ts'
import { backoff, nextState, watchObjects } from './watcher.ts'

const expired = new StatusError('Expired', 'too old resource version: 1 (500)')
const down = new StatusError('ServiceUnavailable', 'down')
const tooLarge = new StatusError('Timeout', 'Timeout: Too large resource version: 9, current: 2', {
  details: { causes: [{ reason: 'ResourceVersionTooLarge' }] },
})
const object = (name: string, resourceVersion: string) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'n', resourceVersion, uid: name, creationTimestamp: '' },
})
const event = (type: WatchEvent['type'], name: string, rv: string): WatchEvent => ({ type, object: object(name, rv) })

const unlisted = (failures = 0): WatcherState => ({ state: 'unlisted', failures })
const listed = (resourceVersion: string, failures = 0): WatcherState => ({ state: 'listed', resourceVersion, failures })
const watching = (resourceVersion: string, failures = 0): WatcherState => ({ state: 'watching', resourceVersion, failures })

test.each<[string, WatcherState, WatcherInput, WatcherState]>([
  ['a list is followed by a watch from its version', unlisted(2), { kind: 'listed', resourceVersion: '5' }, listed('5', 2)],
  ['a failed list is retried', unlisted(1), { kind: 'failed', error: down }, unlisted(2)],
  ['an accepted watch changes the state to watching', listed('5', 1), { kind: 'opened' }, watching('5', 1)],
  ['a rejected watch is retried from the same version', listed('5'), { kind: 'failed', error: down }, listed('5', 1)],
  [
    'an event advances the version and resets failures',
    watching('5', 3),
    { kind: 'event', event: event('ADDED', 'a', '6') },
    watching('6'),
  ],
  [
    'a bookmark advances the version and resets failures',
    watching('5', 3),
    { kind: 'event', event: event('BOOKMARK', '', '9') },
    watching('9'),
  ],
  ['a dropped watch is opened again from the last event', watching('6'), { kind: 'failed', error: down }, listed('6', 1)],
  ['a watch that ended is opened again from the last event', watching('6'), { kind: 'ended' }, listed('6', 1)],
  ['an expired version requires a new list', watching('6'), { kind: 'failed', error: expired }, unlisted(1)],
  [
    'an expired version at the start of a watch requires a new list',
    listed('6'),
    { kind: 'failed', error: expired },
    unlisted(1),
  ],
  [
    'a server whose newest version is older than that of the list requires a new list',
    listed('9'),
    { kind: 'failed', error: tooLarge },
    unlisted(1),
  ],
])('%s', (_, state, input, next) => {
  expect(nextState(state, input)).toEqual(next)
})

test('the delay doubles up to 30 seconds, plus a random part of at most the same length', () => {
  const delays = [0, 1, 2, 3, 20].map((failures) => backoff(unlisted(failures), { next: () => 0.5 }))
  expect(delays).toEqual([0, 150, 300, 600, 45_000])
})

/**
 * Returns a client whose requests get the given responses in order, and the list of these requests. A list of events is the response to a
 * watch; `hang` keeps the watch open. An Error makes the request, or the open watch, fail.
 */
function scriptedClient(...responses: (object | Error | (WatchEvent | Error | 'hang')[])[]) {
  const requests: string[] = []
  const next = (request: ApiRequest) => {
    requests.push(`${request.verb} ${request.options?.resourceVersion ?? '-'}`)
    const response = responses.shift()
    if (response instanceof Error) throw response
    return response
  }
  const transport: Transport = {
    async send(request) {
      return next(request)
    },
    async watch(request, signal) {
      const events = next(request) as (WatchEvent | Error | 'hang')[]
      return (async function* () {
        for (const event of events) {
          if (event instanceof Error) throw event
          if (event === 'hang') await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
          else yield event
        }
      })()
    },
    close() {},
  }
  return { client: createClient(transport), requests }
}

const list = (resourceVersion: string, ...names: string[]) => ({
  metadata: { resourceVersion },
  items: names.map((name) => object(name, resourceVersion)),
})
const ConfigMap = unknownKind({ apiVersion: 'v1', kind: 'ConfigMap', plural: 'configmaps' })

test('a watcher survives rejected lists, dropped watches and expired versions, and ends when aborted', async () => {
  const clock = new VirtualClock(0)
  const stop = new AbortController()
  const { client, requests } = scriptedClient(
    down,
    list('5', 'a', 'b'),
    [event('MODIFIED', 'a', '6'), event('DELETED', 'b', '7'), down],
    down,
    [event('BOOKMARK', '', '20')],
    expired,
    list('40', 'c'),
    ['hang'],
  )
  const received: string[] = []
  const done = (async () => {
    for await (const e of watchObjects(client, ConfigMap, { clock, random: seededRandom(1), signal: stop.signal })) {
      if (e.kind === 'replaced') received.push(`replaced ${e.objects.map((o) => o.metadata.name).join()} ${e.resourceVersion}`)
      else if (e.kind === 'progress') received.push(`progress ${e.resourceVersion}`)
      else received.push(`${e.kind} ${e.object.metadata.name} ${e.object.metadata.resourceVersion}`)
    }
  })()
  while (requests.length < 8) {
    await new Promise(setImmediate)
    clock.step(clock.now() + seconds(60))
  }
  stop.abort()
  await done
  expect(received).toEqual(['replaced a,b 5', 'applied a 6', 'deleted b 7', 'progress 20', 'replaced c 40'])
  expect(requests).toEqual(['list -', 'list -', 'watch 5', 'watch 7', 'watch 7', 'watch 20', 'list -', 'watch 40'])
})

test('the watch is closed when its reader stops', async () => {
  const { client } = scriptedClient(list('5'), [event('ADDED', 'a', '6'), 'hang'])
  let closed = false
  const watch = client.transport.watch.bind(client.transport)
  client.transport.watch = (request, signal) => {
    signal.addEventListener('abort', () => {
      closed = true
    })
    return watch(request, signal)
  }
  const options = { clock: new VirtualClock(), random: seededRandom(1), signal: new AbortController().signal }
  for await (const e of watchObjects(client, ConfigMap, options)) if (e.kind === 'applied') break
  expect(closed).toBe(true)
})
