/** Validates the discovery response of an extension server. Upstream: internal/runtime/client, Discover, v1.14. */
import type { Catalog, Discovery, ExtensionHandler, ResponseOf } from '@capstan/api'
import { dnsLabelProblems, parseApiVersion } from '@capstan/kube'
import { HookFailed } from './hook-failed.ts'

type Discovered = NonNullable<ResponseOf<typeof Discovery>['handlers']>[number]

/**
 * Returns discovered handlers in the form of `status.handlers` of the ExtensionConfig: with defaults, and with names that are
 * unique among all servers.
 *
 * @throws HookFailed bad-discovery with all problems
 */
export function checkDiscovery(extensionConfig: string, discovered: readonly Discovered[], catalog: Catalog): ExtensionHandler[] {
  const problems = discovered.flatMap((handler, index) => [
    ...(discovered.findIndex(({ name }) => name === handler.name) < index
      ? [`duplicate name for handler ${handler.name} found`]
      : []),
    ...handlerProblems(handler, catalog),
  ])
  if (problems.length > 0) {
    // As in Go, equal errors are listed once.
    const distinctProblems = [...new Set(problems)]
    const text = distinctProblems.length === 1 ? distinctProblems[0] : `[${distinctProblems.join(', ')}]`
    const problem = distinctProblems.every((text) => text.endsWith(unknownHook)) ? 'UnknownHook' : 'InvalidDiscovery'
    throw new HookFailed('bad-discovery', `failed to validate discovery response: ${text}`, { problem })
  }
  return discovered.map(({ name, requestHook, timeoutSeconds = defaultTimeout, failurePolicy = 'Fail' }) => ({
    name: `${name}.${extensionConfig}`,
    requestHook: { apiVersion: requestHook.apiVersion, hook: requestHook.hook },
    // As in Go, 0 is omitted (omitempty).
    ...(timeoutSeconds === 0 ? {} : { timeoutSeconds }),
    failurePolicy,
  }))
}

const unknownHook = 'is not in the Runtime SDK catalog'

/** Default timeout of a handler in seconds. */
export const defaultTimeout = 10

function handlerProblems({ name, requestHook, timeoutSeconds, failurePolicy }: Discovered, catalog: Catalog): string[] {
  const { apiVersion, hook } = requestHook
  const problems: string[] = []
  const syntax = dnsLabelProblems(name)
  if (syntax.length > 0) problems.push(`handler name ${name} is not valid: [${syntax.join(' ')}]`)
  if (timeoutSeconds !== undefined && (timeoutSeconds < 0 || timeoutSeconds > 30)) {
    problems.push(`handler ${name} timeoutSeconds ${timeoutSeconds} must be between 0 and 30`)
  }
  if (failurePolicy !== undefined && failurePolicy !== 'Fail' && failurePolicy !== 'Ignore') {
    problems.push(`handler ${name} failurePolicy ${String(failurePolicy)} must equal "Ignore" or "Fail"`)
  }
  if (apiVersion.split('/').length > 2) {
    problems.push(
      `handler ${name} requestHook APIVersion ${apiVersion} is not valid: unexpected GroupVersion string: ${apiVersion}`,
    )
  } else if (!isKnown(catalog, apiVersion, hook)) {
    problems.push(`handler ${name} requestHook ${apiVersion}/${hook} ${unknownHook}`)
  }
  return problems
}

function isKnown(catalog: Catalog, apiVersion: string, hook: string): boolean {
  const { group, version } = parseApiVersion(apiVersion)
  return catalog.find(group, version, hook) !== undefined
}
