/** Problems of failed calls with meaning and remedy. docs/reference/errors.md is generated from them. */
import { durationText } from '@capstan/kube'
import { defaultBreakerLimits } from './breaker.ts'
import type { HookFailureCode } from './hook-failed.ts'
import { maxBodyBytes } from '../wire/wire.ts'

const { failures, inFlight, shortest, longest } = defaultBreakerLimits

interface ProblemEntry {
  /** Codes of the failures that can have this problem. A code is less specific than a problem; metrics report the code. */
  readonly codes: readonly HookFailureCode[]
  readonly meaning: string
  readonly remedy: string
}

/**
 * Causes of failed calls, by name. The names are stable, for searches and alerts: after a failed discovery, the message of the condition
 * `Discovered` begins with the name.
 */
export const hookProblems = {
  DNS: {
    codes: ['unreachable'],
    meaning: 'The host name of the URL, or of the Service, could not be resolved to an address.',
    remedy:
      'Look at `spec.clientConfig`: the Service and its namespace, or the host in `url`. A Service has a name only inside the cluster: the manager must run there.',
  },
  ConnectionRefused: {
    codes: ['unreachable'],
    meaning: 'No server listens at that address and port.',
    remedy:
      'Check that the extension is running and ready, and that it listens on that port. A Service without endpoints refuses connections, too.',
  },
  ConnectionReset: {
    codes: ['unreachable'],
    meaning: 'The connection, or the HTTP/2 stream of the call, was closed before the response, or in the middle of it.',
    remedy:
      'Read the log of the extension. It may have ended or been killed for its memory use, or a proxy or firewall closes connections.',
  },
  Unreachable: {
    codes: ['unreachable'],
    meaning:
      'No complete response, for a reason without its own entry, for example: no route, no response to the connection attempt, a proxy that rejects the connection, or a TLS error that is not listed.',
    remedy: 'Read the message. The most frequent causes are network policies and firewalls.',
  },
  Timeout: {
    codes: ['timeout'],
    meaning:
      'No complete response within the timeout of the handler: its own `timeoutSeconds`, or your override. The timeout of a discovery is 10 seconds.',
    remedy:
      'Let the handler work in the background and respond with `retryAfterSeconds` meanwhile. `runtime.capstan.dev/handler-overrides` sets a longer timeout, at most 30 seconds.',
  },
  NotTLS: {
    codes: ['unreachable'],
    meaning: 'The server at that address does not use TLS.',
    remedy: 'Check that the port is that of the hooks, not of health checks or metrics. Extensions are called over HTTPS only.',
  },
  TLSName: {
    codes: ['unreachable'],
    meaning: 'The certificate does not contain the host name of the URL.',
    remedy:
      'For a Service, the certificate must contain `<service>.<namespace>.svc`. The message lists the names in the certificate or, if the URL has an address, the addresses.',
  },
  UnknownAuthority: {
    codes: ['unreachable'],
    meaning:
      'The certificate is not signed by an authority of `caBundle`, or, without a `caBundle`, by an authority of the system.',
    remedy:
      'Put the authority into `spec.clientConfig.caBundle`, or have it injected: `runtime.cluster.x-k8s.io/inject-ca-from-secret: <namespace>/<name>`.',
  },
  CertificateExpired: {
    codes: ['unreachable'],
    meaning: 'The certificate of the extension has expired, or is not valid yet.',
    remedy:
      'Renew the certificate; servers of `runExtension` reload changed files. If it was renewed, compare the clocks of both machines.',
  },
  ClientCertificate: {
    codes: ['unreachable'],
    meaning: 'The extension requires a client certificate, and got none, or one that it does not trust.',
    remedy: 'Start the manager with `--runtime-extension-client-cert-file` and `--runtime-extension-client-key-file`.',
  },
  CABundle: {
    codes: ['bad-ca'],
    meaning:
      'The certificate authorities could not be copied from the Secret that `inject-ca-from-secret` names, or contain no certificate. No call was made.',
    remedy:
      'The Secret must exist and have PEM certificates in `ca.crt`; it is read again as soon as it changes. Without a Secret, check `spec.clientConfig.caBundle`, which is base64 of PEM.',
  },
  BadURL: {
    codes: ['bad-url'],
    meaning: 'The ExtensionConfig has neither a Service nor a URL, or the URL is not an HTTPS URL.',
    remedy: 'Set `spec.clientConfig.service` or `spec.clientConfig.url`, one of the two.',
  },
  NotFound: {
    codes: ['bad-status'],
    meaning: 'Status 404: the server does not know the path of the handler.',
    remedy:
      'The extension may have removed the handler: the next discovery, within ten minutes, updates the list. If a discovery fails, check the path in `url` or `service`. In a path, the names of hook and handler are in lower case.',
  },
  UnexpectedStatus: {
    codes: ['bad-status'],
    meaning: 'The HTTP status is neither 200 nor 404. Redirects are not followed.',
    remedy:
      'The message usually has the beginning of the body. Possible causes are a proxy, an overloaded extension (status 503), or a bug in the extension.',
  },
  TooLong: {
    codes: ['bad-answer'],
    meaning: `The response has more than ${maxBodyBytes / 2 ** 20} MiB.`,
    remedy: 'Respond with patches instead of whole objects.',
  },
  Garbage: {
    codes: ['bad-answer', 'unreachable'],
    meaning: 'The response is not HTTP, or its body is not JSON.',
    remedy: 'Another server has that address, or the handler writes other text to the response.',
  },
  Schema: {
    codes: ['bad-answer'],
    meaning: 'The response is JSON, but does not match the schema of the hook.',
    remedy:
      'The message usually names the field. [hooks.md](hooks.md) lists the fields; `capstan hooks call` calls the handler alone.',
  },
  Conversion: {
    codes: ['conversion'],
    meaning:
      'The handler registered for another version of the hook, and the request or the response could not be converted between the versions. Or this core does not have the version, which an earlier discovery recorded.',
    remedy:
      'Register the handler for the version that core calls; `capstan hooks preflight` lists handlers of deprecated versions.',
  },
  ExtensionFailure: {
    codes: ['failure'],
    meaning: 'The extension responded with status Failure. No failure policy ignores it.',
    remedy: "The text after `got failure response with message:` is the extension's own message.",
  },
  InvalidAnswer: {
    codes: ['failure'],
    meaning:
      'The response has a value that its field does not allow, such as a negative `retryAfterSeconds`. No failure policy ignores it.',
    remedy: 'A bug in the extension. The message names the field and the allowed values.',
  },
  UnknownStatus: {
    codes: ['unknown-status'],
    meaning: 'The `status` of the response is neither Success nor Failure.',
    remedy: 'A bug in the extension: `status` is required, and case-sensitive.',
  },
  InvalidDiscovery: {
    codes: ['bad-discovery'],
    meaning: 'A handler in the list has an invalid or duplicate name, or an invalid timeout, failure policy or `apiVersion`.',
    remedy: 'The message names each invalid handler, with the reason.',
  },
  UnknownHook: {
    codes: ['bad-discovery'],
    meaning: 'A handler is for a hook, or a version of it, that this core does not have.',
    remedy:
      'The extension was made for another release (`capstan hooks preflight`), or for a hook of a provider that the manager does not know (`--provider-hooks`).',
  },
  BreakerOpen: {
    codes: ['unavailable'],
    meaning: `The circuit breaker did not call the handler: the last ${failures} calls of the handler got no valid response, or ${inFlight} calls of the handler were in progress during its whole timeout. In the first case, the message has the last failure.`,
    remedy: `Correct the cause of the last failure. One call is attempted after ${durationText(shortest)}, then after twice as long each time, at most ${durationText(longest)}.`,
  },
  NotReady: {
    codes: ['not-ready'],
    meaning:
      'The list of handlers is incomplete: the manager has just started and has not attempted every discovery, or an ExtensionConfig that selects the object was never discovered.',
    remedy:
      'Wait a moment after a start. If an ExtensionConfig was never discovered, the message names it: see its condition `Discovered`.',
  },
  NotRegistered: {
    codes: ['not-registered'],
    meaning:
      'A handler is called by name, for example for a patch of a ClusterClass, and no handler of that name is registered. In `capstan hooks call`: you did not name a handler, and the server does not have exactly one for this version of the hook. With `--replay-hooks`: the tape has no response for the request.',
    remedy:
      'Compare the patches of the ClusterClass with `status.handlers` of the ExtensionConfig: `<handler>.<extensionconfig>`.',
  },
  WrongHook: {
    codes: ['wrong-hook'],
    meaning: 'The handler that is called by name is for another hook.',
    remedy: 'Name a handler of the right hook in the ClusterClass: `status.handlers` of the ExtensionConfig lists the hooks.',
  },
  NamespaceNotMatched: {
    codes: ['namespace'],
    meaning:
      'The handler that is called by name does not select the object: its `namespaceSelector` or object selector does not match. Or the namespace could not be read, so it is unknown whether a `namespaceSelector` matches.',
    remedy: 'Change the selectors of the ExtensionConfig, the labels, or the ClusterClass that names the handler.',
  },
} as const satisfies { readonly [problem: string]: ProblemEntry }

export type HookProblem = keyof typeof hookProblems
