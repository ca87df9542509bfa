/**
 * A server in TypeScript with an extension for each of many test cases. The first segment of the URL's path is the name of the case. Each
 * extension records every call, also of Discovery, and sends the responses that its case sets. It has a handler for every hook except
 * Discovery, to which the SDK responds by default.
 */
import { type Hook, hookCatalog } from '@capstan/api'
import {
  type Answer,
  defineExtension,
  extensionServer,
  type FetchHandler,
  type Handler,
  type HandlerOptions,
  listen,
  type Listening,
  proceedNow,
  proceedWith,
} from '@capstan/extension'
import { systemClock } from '@capstan/kube'
import { type CertifiedKey, issueCertificate } from '@capstan/kube/node'

/** A call that an extension has received. */
export interface RecordedCall {
  readonly hook: string
  /** Time of the call in milliseconds, from `performance.now()`. */
  readonly at: number
  readonly request: { readonly [field: string]: unknown }
}

/** A response of the extension, or an HTTP response that is sent unchanged. */
export type ScriptedResponse = Answer | Response

/** The extension of one case. */
export interface CaseExtension {
  /** URL for `clientConfig`. */
  readonly url: string
  readonly calls: RecordedCall[]
  /**
   * Sets the response to a hook. `undefined` restores the default response, with which core continues. The response to Discovery must be a
   * `Response`.
   */
  setResponse(hook: string, respond: ((call: RecordedCall) => ScriptedResponse | Promise<ScriptedResponse>) | undefined): void
}

/** The server of the extensions of all cases. */
export interface ExtensionHost extends AsyncDisposable {
  readonly listening: Listening
  /** Handles the requests of all cases, for cases that run a separate server. */
  readonly handle: FetchHandler
  /** Adds the extension of a case. `handlers` are the options of all its handlers in the discovery response. */
  extensionFor(name: string, handlers?: Omit<HandlerOptions, 'name'>): CaseExtension
}

/**
 * Starts a server on loopback with a certificate of `authority`. With `clientCA` (PEM), clients need a certificate that `clientCA` signed.
 */
export async function startExtensionHost(authority: CertifiedKey, clientCA?: string): Promise<ExtensionHost> {
  const servers = new Map<string, FetchHandler>()
  const route: FetchHandler = async (request) => {
    const [, caseName = ''] = new URL(request.url).pathname.split('/')
    return (await servers.get(caseName)?.(request)) ?? new Response('no such case\n', { status: 404 })
  }
  const certified = await servingCertificateOf(authority)
  const listening = await listen(route, { ...certified, ...(clientCA === undefined ? {} : { clientCA }) })
  return {
    listening,
    handle: route,
    extensionFor(name, handlers = {}) {
      const { server, ...caseExtension } = caseExtensionAt(`${listening.url}/${name}`, handlers)
      servers.set(name, server)
      return caseExtension
    },
    [Symbol.asyncDispose]: () => listening.close(),
  }
}

/** Issues a serving certificate for loopback. */
export async function servingCertificateOf(authority: CertifiedKey): Promise<{ certificate: string; key: string }> {
  const { certificate, key } = await issueCertificate(authority, systemClock, {
    commonName: 'extension',
    usages: ['server'],
    ipAddresses: ['127.0.0.1'],
    dnsNames: ['localhost'],
  })
  return { certificate, key }
}

function caseExtensionAt(url: string, handlerOptions: Omit<HandlerOptions, 'name'>): CaseExtension & { server: FetchHandler } {
  const responders = new Map<string, (call: RecordedCall) => ScriptedResponse | Promise<ScriptedResponse>>()
  const calls: RecordedCall[] = []
  const handlers = hookCatalog
    .filter(({ singleton }) => !singleton)
    .map((hook): Handler => ({ ...handlerOptions, hook, name: handlerName(hook), handle: () => allowingResponse(hook) }))
  const defaultServer = extensionServer(defineExtension({ name: 'scripted', handlers }))
  return {
    url,
    calls,
    setResponse(hook, respond) {
      if (respond) responders.set(hook, respond)
      else responders.delete(hook)
    },
    async server(request) {
      // The path is /CASE/GROUP/VERSION/HOOK/HANDLER, or /CASE/GROUP/VERSION/discovery.
      const segment = new URL(request.url).pathname.split('/')[4]
      const hook = hookCatalog.find(({ name }) => name.toLowerCase() === segment)
      const text = await request.text()
      if (!hook) return new Response('no such hook\n', { status: 404 })
      const call: RecordedCall = { hook: hook.name, at: performance.now(), request: JSON.parse(text) as RecordedCall['request'] }
      calls.push(call)
      const response = await responders.get(hook.name)?.(call)
      if (response instanceof Response) return response
      const repeatedRequest = new Request(request.url, { method: 'POST', body: text })
      if (!response) return defaultServer(repeatedRequest)
      // The package `extension` encodes the response, because it is under test, too.
      const scriptedExtension = defineExtension({
        name: 'scripted',
        handlers: [{ hook, name: handlerName(hook), handle: () => response }],
      })
      return extensionServer(scriptedExtension)(repeatedRequest)
    },
  }
}

/** Returns the name of a hook's handler: `before-cluster-create` for `BeforeClusterCreate`. */
const handlerName = ({ name }: Pick<Hook, 'name'>): string => name.replaceAll(/(?!^)([A-Z])/g, '-$1').toLowerCase()

function allowingResponse({ name }: Hook): Answer {
  if (name === 'GeneratePatches') return proceedWith({ items: [] })
  if (name === 'DiscoverVariables') return proceedWith({ variables: [] })
  return proceedNow()
}
