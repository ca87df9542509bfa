/** Problems of failed calls with meaning and remedy. docs/reference/errors.md is generated from it. */
import { durationText } from '@capstan/kube'
import { defaultBreakerLimits } from './breaker.ts'
import type { HookFailureCode } from './hook-failed.ts'
import { maxBodyBytes } from '../wire/wire.ts'

const { failures, inFlight, shortest, longest } = defaultBreakerLimits

interface ProblemEntry {
  /** Codes that distinguish these failures where details do not matter, as in metrics. */
  readonly codes: readonly HookFailureCode[]
  readonly meaning: string
  readonly remedy: string
}

/** Causes of failed calls, each a stable word: the first word of the `Discovered` condition's message, for search and alerts. */
export const hookProblems = {
  DNS: {
    codes: ['unreachable'],
    meaning: 'The host of the URL, or of the Service, has no address.',
    remedy:
      'Look at `spec.clientConfig`: the Service and its namespace, or the host in `url`. A Service has a name only inside the cluster: the manager must run there.',
  },
  ConnectionRefused: {
    codes: ['unreachable'],
    meaning: 'No server listens at that address and port.',
    remedy: 'Is the extension running and ready, and is it that port? A Service without endpoints refuses connections, too.',
  },
  ConnectionReset: {
    codes: ['unreachable'],
    meaning: 'The connection was broken off, before the answer or in the middle of it.',
    remedy:
      'Look at the log of the extension: it ended, was killed for its memory, or something in between closes connections early.',
  },
  Unreachable: {
    codes: ['unreachable'],
    meaning:
      'No connection, for a reason that has no word of its own: no route, no answer to the connection, another complaint of TLS.',
    remedy: 'Read the message. Network policies and firewalls are what is most often in the way.',
  },
  Timeout: {
    codes: ['timeout'],
    meaning: 'No whole answer in the time of the handler: what it announced, or the override of it; 10 seconds for a discovery.',
    remedy:
      'Have the handler hold (`retryAfterSeconds`) rather than work while it is waited for. `runtime.capstan.dev/handler-overrides` gives it more time, 30 seconds at most.',
  },
  NotTLS: {
    codes: ['unreachable'],
    meaning: 'What answered does not speak TLS.',
    remedy: 'Is it the port of the extension, and not that of its health or metrics? Extensions are called over HTTPS only.',
  },
  TLSName: {
    codes: ['unreachable'],
    meaning: 'The certificate is for other names than the one that was called.',
    remedy: 'For a Service it must name `<service>.<namespace>.svc`. The message has the names that it has.',
  },
  UnknownAuthority: {
    codes: ['unreachable'],
    meaning: 'The certificate is not signed by an authority of `caBundle`, or, without one, of the system.',
    remedy:
      'Put the authority into `spec.clientConfig.caBundle`, or have it injected: `runtime.cluster.x-k8s.io/inject-ca-from-secret: <namespace>/<name>`.',
  },
  CertificateExpired: {
    codes: ['unreachable'],
    meaning: 'The certificate of the extension has expired, or is not valid yet.',
    remedy: 'Renew it; servers of `runExtension` take over changed files. If it was renewed: look at the clocks of both sides.',
  },
  ClientCertificate: {
    codes: ['unreachable'],
    meaning: 'The extension wants a certificate of its callers and got none, or one that it does not trust.',
    remedy: 'Start the manager with `--runtime-extension-client-cert-file` and `--runtime-extension-client-key-file`.',
  },
  CABundle: {
    codes: ['unreachable'],
    meaning:
      'The certificate authorities could not be copied from the Secret that `inject-ca-from-secret` names, or contain no certificate. No call was made.',
    remedy:
      'The Secret must be there and have certificates in PEM in `ca.crt`: it is read again as soon as it changes. Otherwise look at `spec.clientConfig.caBundle`, which is base64 of PEM.',
  },
  BadURL: {
    codes: ['bad-url'],
    meaning: 'The ExtensionConfig does not say where the server is, or not as an HTTPS URL.',
    remedy: 'Set `spec.clientConfig.service` or `spec.clientConfig.url`, one of the two.',
  },
  NotFound: {
    codes: ['bad-status'],
    meaning: 'Status 404: the server does not know the path of the handler.',
    remedy:
      'The handler may be gone: the next discovery, within ten minutes, finds out. In a discovery: look at the path in `url` or `service`. Paths are in lower case.',
  },
  UnexpectedStatus: {
    codes: ['bad-status'],
    meaning: 'Another status than 200. Redirects are not followed.',
    remedy: 'The message has the beginning of the body: a proxy in between, or a fault in the extension.',
  },
  TooLong: {
    codes: ['bad-answer'],
    meaning: `The answer has more than ${maxBodyBytes / 2 ** 20} MiB.`,
    remedy: 'Answer with patches rather than whole objects.',
  },
  Garbage: {
    codes: ['bad-answer', 'unreachable'],
    meaning: 'The answer is not HTTP, or its body is not JSON.',
    remedy: 'Something else answers at that address, or the handler writes beside its answer.',
  },
  Schema: {
    codes: ['bad-answer'],
    meaning: 'The answer is JSON, and not of the shape that the hook has.',
    remedy: 'The message names the field. [hooks.md](hooks.md) has every field, `capstan hooks call` tries the handler alone.',
  },
  Conversion: {
    codes: ['conversion'],
    meaning: 'The handler registered for an older version of the hook, and request or answer could not be brought to the other.',
    remedy: 'Have the extension register for the version that core calls; `capstan hooks preflight` lists what is old.',
  },
  ExtensionFailure: {
    codes: ['failure'],
    meaning: 'The extension answered with status Failure. No failure policy ignores it.',
    remedy: 'What comes after the colon are its own words.',
  },
  InvalidAnswer: {
    codes: ['failure'],
    meaning:
      'The answer has a value that its field does not allow, such as a negative `retryAfterSeconds`. No failure policy ignores it.',
    remedy: 'A fault in the extension. The message names the field and what it allows.',
  },
  UnknownStatus: {
    codes: ['unknown-status'],
    meaning: 'The extension answered with a status that is neither Success nor Failure.',
    remedy: 'A fault in the extension: `status` is required, and spelled like that.',
  },
  InvalidDiscovery: {
    codes: ['bad-discovery'],
    meaning: 'The list of handlers breaks its rules: names, times, failure policies.',
    remedy: 'The message names each handler and what is wrong with it.',
  },
  UnknownHook: {
    codes: ['bad-discovery'],
    meaning: 'A handler is for a hook, or a version of it, that this core does not have.',
    remedy:
      'The extension was made for another release (`capstan hooks preflight`), or for a hook of a provider that the manager does not know (`--provider-hooks`).',
  },
  BreakerOpen: {
    codes: ['unavailable'],
    meaning: `Not called: the last ${failures} calls did not get through, or ${inFlight} calls of the handler are under way and none ended in time. The message has the last failure.`,
    remedy: `Correct the cause of the last failure. One call tries after ${durationText(shortest)} at first, after twice as long each time, after ${durationText(longest)} at most.`,
  },
  NotReady: {
    codes: ['not-ready'],
    meaning: 'Not every ExtensionConfig has been discovered since the start, so the list of handlers is incomplete.',
    remedy: 'Wait a moment after a start. Otherwise the message names the ExtensionConfig: see its condition `Discovered`.',
  },
  NotRegistered: {
    codes: ['not-registered'],
    meaning: 'A handler is called by its name, and there is none of that name.',
    remedy:
      'Compare the patches of the ClusterClass with `status.handlers` of the ExtensionConfig: `<handler>.<extensionconfig>`.',
  },
  WrongHook: {
    codes: ['wrong-hook'],
    meaning: 'The handler that is called by its name is for another hook.',
    remedy: 'The ClusterClass names a handler for another purpose.',
  },
  NamespaceNotMatched: {
    codes: ['namespace'],
    meaning:
      'A handler that is called by its name is not for this object: `namespaceSelector` or the object selector do not match, or the namespace could not be read.',
    remedy: 'Change the selectors of the ExtensionConfig, the labels, or the ClusterClass that names the handler.',
  },
} as const satisfies { readonly [problem: string]: ProblemEntry }

export type HookProblem = keyof typeof hookProblems
