/**
 * Generates the files of `packages/extension/fixtures`: a request of each hook, responses of most hooks, and an index of the hooks and
 * the responses. For each response it has the effects in core, or core's error.
 */
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
    acceptedResponses.map(async (responseCase) => {
      const result = await coreResultOf(responseCase)
      const { hook, name, about } = responseCase
      if (result.kind === 'rejected')
        throw new Error(`The response ${name} must be accepted, but core rejects it: ${result.error}`)
      return { hook: hook.name, file: `accepted/${name}.json`, about, core: result.effects }
    }),
  )
  const refused = await rejectedByCore()
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
    ...rejectedResponses.map((responseCase): [string, string] => [
      `${folder}/refused/${responseCase.name}.json`,
      json({ status: responseCase.status ?? 200, body: textOf(responseCase) }),
    ]),
  ]
}

/** Returns the index entries of `rejectedResponses`, each with core's error. @throws Error if core accepts one of these responses */
export const rejectedByCore = () =>
  Promise.all(
    rejectedResponses.map(async (responseCase) => {
      const result = await coreResultOf(responseCase)
      const { hook, name, about } = responseCase
      if (result.kind === 'accepted')
        throw new Error(`The response ${name} must be rejected, but core accepts it: ${result.effects.join(', ')}`)
      const { problem, error } = result
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

/** Decodes the response as core's hook client does. Returns core's error, or the effects of the response in core. */
async function coreResultOf(responseCase: ResponseCase): Promise<ReturnType<typeof hookResponseEffects>> {
  const { hook, status = 200 } = responseCase
  const handler = 'gate.sample'
  const request = fixture(hook) as object
  try {
    const { response } = await callServer(hook, {
      server: { url: 'https://sample' },
      request,
      handler: 'gate',
      timeoutSeconds: 10,
      transport: inProcess(async () => new Response(textOf(responseCase), { status })),
      clock: systemClock,
    })
    return hookResponseEffects(hook, handler, request, response)
  } catch (err) {
    if (!(err instanceof HookFailed)) throw err
    return { kind: 'rejected', error: err.message, problem: err.problem }
  }
}
