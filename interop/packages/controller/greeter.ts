import { type Controller, controller, proceed, requeue } from '@capstan/controller'
import { defineKind, type ObjectOf, s, seconds } from '@capstan/kube'

export const Greeting = defineKind({
  group: 'example.dev',
  version: 'v1',
  kind: 'Greeting',
  plural: 'greetings',
  scope: 'Namespaced',
  spec: s.object({ name: s.string({ minLength: 1 }), everySeconds: s.int32({ minimum: 1 }) }),
  status: s.object({ text: s.string().optional(), times: s.int32().optional() }),
})
export type Greeting = ObjectOf<typeof Greeting>

/** Writes a greeting into the status of a Greeting every `everySeconds` seconds, with the number of these periods since the Greeting was created. */
export const greeter: Controller = controller({
  name: 'greeter',
  for: Greeting,
  async reconcile(key, { cache, client, clock }) {
    const greeting: Greeting | undefined = cache.peek(Greeting, key)
    if (!greeting) return proceed()
    const times = Math.floor(
      (clock.now() - Date.parse(greeting.metadata.creationTimestamp)) / seconds(greeting.spec.everySeconds),
    )
    if (times !== greeting.status?.times) {
      const status = { text: `Hello ${greeting.spec.name}`, times }
      await client.patch(Greeting, key, { type: 'merge', body: { status } }, { subresource: 'status' })
    }
    return requeue(seconds(greeting.spec.everySeconds), 'the next greeting')
  },
})
