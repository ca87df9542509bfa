import { type Client, minutes, StatusError, VirtualClock } from '@capstan/kube'
import { expect, test } from 'vitest'
import { AccessReviewer } from './review-access.ts'

/**
 * Returns a client of an API server that accepts one token and allows its user to get /metrics. Also returns the kinds of the reviews that
 * were sent, and a function that makes all later requests fail.
 */
function scriptedServer() {
  const reviews: string[] = []
  let isDown = false
  const client = {
    create: (
      kind: { kind: string },
      { spec }: { spec: { token?: string; user?: string; nonResourceAttributes?: { path: string; verb: string } } },
    ) => {
      reviews.push(kind.kind)
      if (isDown) return Promise.reject(new StatusError('ServiceUnavailable', 'down'))
      if (kind.kind === 'TokenReview')
        return Promise.resolve({
          status:
            spec.token === 'good'
              ? { authenticated: true, user: { username: 'prometheus', groups: ['g'] } }
              : { authenticated: false },
        })
      const { path, verb } = spec.nonResourceAttributes!
      return Promise.resolve({ status: { allowed: spec.user === 'prometheus' && path === '/metrics' && verb === 'get' } })
    },
  } as unknown as Client
  return { client, reviews, down: () => (isDown = true) }
}
const requestFor = (path: string, token?: string, method = 'GET') =>
  new Request(`https://localhost${path}`, { method, headers: token === undefined ? {} : { authorization: `Bearer ${token}` } })

test.each([
  ['/metrics', 'good', 'GET', { kind: 'allowed' }],
  ['/metrics', undefined, 'GET', { kind: 'rejected', status: 401, message: 'Unauthorized' }],
  ['/metrics', 'bad', 'GET', { kind: 'rejected', status: 401, message: 'Unauthorized' }],
  ['/debug/flags/v', 'good', 'PUT', { kind: 'rejected', status: 403, message: 'Authorization denied for user prometheus' }],
] as const)(
  'the decision on a request for %s with the token %s and the method %s is %j',
  async (path, token, method, decision) => {
    expect(
      await new AccessReviewer(scriptedServer().client, new VirtualClock(0)).review(requestFor(path, token, method)),
    ).toEqual(decision)
  },
)

test('sends reviews for the same token and path once a minute', async () => {
  const { client, reviews } = scriptedServer()
  const clock = new VirtualClock(0)
  const reviewer = new AccessReviewer(client, clock)
  for (let i = 0; i < 5; i++) await reviewer.review(requestFor('/metrics', 'good'))
  expect(reviews).toEqual(['TokenReview', 'SubjectAccessReview'])
  clock.step(minutes(1) - 1)
  await reviewer.review(requestFor('/metrics', 'good'))
  expect(reviews).toHaveLength(2)
  clock.step(minutes(1))
  await reviewer.review(requestFor('/metrics', 'good'))
  expect(reviews).toHaveLength(4)
})

test('authorizes with the whole user of the token: groups, UID and extra attributes', async () => {
  const user = { username: 'prometheus', uid: '1', groups: ['g'], extra: { 'authentication.kubernetes.io/pod-name': ['p'] } }
  const specs: unknown[] = []
  const client = {
    create: (kind: { kind: string }, { spec }: { spec: unknown }) => {
      if (kind.kind === 'TokenReview') return Promise.resolve({ status: { authenticated: true, user } })
      specs.push(spec)
      return Promise.resolve({ status: { allowed: true } })
    },
  } as unknown as Client
  await new AccessReviewer(client, new VirtualClock(0)).review(requestFor('/metrics', 'good'))
  const { username, ...rest } = user
  expect(specs).toEqual([{ user: username, ...rest, nonResourceAttributes: { path: '/metrics', verb: 'get' } }])
})

test('rejects requests while the API server fails', async () => {
  const { client, down } = scriptedServer()
  down()
  expect(await new AccessReviewer(client, new VirtualClock(0)).review(requestFor('/metrics', 'good'))).toMatchObject({
    kind: 'rejected',
    status: 500,
  })
})
