/** Generates `packages/extension/fixtures`: a request of each hook, and responses of most hooks, with core's results. */
import { type Hook, hookApiVersion, hookCatalog, hookPath } from '@capstan/api'
import { hookResponseEffects } from '@capstan/core'
import { callServer, fixture, HookFailed, inProcess } from '@capstan/extension'
import { systemClock } from '@capstan/kube'
import { type ResponseCase, acceptedResponses, rejectedResponses } from './hook-responses.ts'

const folder = 'packages/extension/fixtures'
const json = (value: unknown): string => `${JSON.stringify(value, undefined, 2)}\n`

/** Returns the paths and texts of all files. */
export async function hookFixtures(): Promise<[path: string, text: string][]> {
  const accepted = await Promise.all(
    acceptedResponses.map(async (answer) => {
      const verdict = await coreResultOf(answer)
      if (verdict.kind === 'rejected') throw new Error(`${answer.name} is rejected: ${verdict.error}`)
      const { hook, name, about } = answer
      return { hook: hook.name, file: `accepted/${name}.json`, about, core: verdict.effects }
    }),
  )
  const refused = await refusedByCore()
  const hooks = hookCatalog.map((hook) => ({
    hook: hook.name,
    path: hook.singleton ? hookPath(hook) : `${hookPath(hook, 'x').slice(0, -1)}{name}`,
    blocking: hook.blocking,
    request: `requests/${hook.name}.json`,
  }))
  return [
    [`${folder}/index.json`, json({ hooks, accepted, refused })],
    ...hookCatalog.map((hook): [string, string] => [`${folder}/requests/${hook.name}.json`, json(requestOf(hook))]),
    ...acceptedResponses.map(({ name, body }): [string, string] => [`${folder}/accepted/${name}.json`, json(body)]),
    ...rejectedResponses.map((answer): [string, string] => [
      `${folder}/refused/${answer.name}.json`,
      json({ status: answer.status ?? 200, body: textOf(answer) }),
    ]),
  ]
}

/** Responses that core rejects, with the error. */
export const refusedByCore = () =>
  Promise.all(
    rejectedResponses.map(async (answer) => {
      const verdict = await coreResultOf(answer)
      if (verdict.kind === 'accepted') throw new Error(`${answer.name} is accepted: core ${verdict.effects.join(', ')}`)
      const { hook, name, about } = answer
      const { problem, error } = verdict
      return { hook: hook.name, file: `refused/${name}.json`, about, ...(problem ? { problem } : {}), error }
    }),
  )

const requestOf = (hook: Hook): object => ({
  apiVersion: hookApiVersion(hook),
  kind: `${hook.name}Request`,
  ...(fixture(hook) as object),
  ...(hook.singleton ? {} : { settings: { region: 'eu1' } }),
})

const textOf = ({ body }: ResponseCase): string => (typeof body === 'string' ? body : JSON.stringify(body))

/** Sends the response through core's client. Returns the error, or the effects on the controller that called the hook. */
async function coreResultOf(answer: ResponseCase): Promise<ReturnType<typeof hookResponseEffects>> {
  const { hook, status = 200 } = answer
  const handler = 'gate.sample'
  const request = fixture(hook) as object
  try {
    const { response } = await callServer(hook, {
      server: { url: 'https://sample' },
      request,
      handler: 'gate',
      timeoutSeconds: 10,
      transport: inProcess(async () => new Response(textOf(answer), { status })),
      clock: systemClock,
    })
    return hookResponseEffects(hook, handler, request, response)
  } catch (err) {
    if (!(err instanceof HookFailed)) throw err
    return { kind: 'rejected', error: err.message, problem: err.problem }
  }
}
