/** Defaults and validates ExtensionConfigs beyond their schema. Upstream: core/webhooks/admission/extensionconfig.go, v1.14. */
import type { FieldError, KubeObject } from '@capstan/kube'
import { dns1035LabelProblems, dnsLabelProblems, forbidden, invalid, requestURIProblem, required } from '@capstan/kube'
import { selectorSyntaxErrors } from '../../../core/v1beta2/admission/selector.ts'
import type { ClientConfig, ExtensionConfigSpec } from '../extension-config.ts'
import { extensionOptionErrors } from '../extension-options.ts'

type ExtensionConfigLike = KubeObject & { spec: ExtensionConfigSpec }

export function defaultExtensionConfig({ spec }: ExtensionConfigLike): void {
  spec.namespaceSelector ??= {}
  if (spec.clientConfig.service) spec.clientConfig.service.port ??= 443
}

export function extensionConfigErrors({ metadata, spec }: ExtensionConfigLike): FieldError[] {
  const problems = dnsLabelProblems(metadata.name)
  return [
    ...(problems.length > 0
      ? [
          invalid(
            'metadata.name',
            metadata.name,
            `ExtensionConfig name should be a valid DNS1123 label name: [${problems.join(' ')}]`,
          ),
        ]
      : []),
    ...extensionOptionErrors(metadata),
    ...clientConfigErrors('spec.clientConfig', spec.clientConfig),
    ...(spec.namespaceSelector ? [] : [required('spec.namespaceSelector', 'must be defined')]),
    ...selectorSyntaxErrors('spec.namespaceSelector', spec.namespaceSelector),
  ]
}

function clientConfigErrors(path: string, { url, service }: ClientConfig): FieldError[] {
  return [
    ...(url || service ? [] : [required(path, 'either url or service must be defined')]),
    ...(url && service ? [forbidden(path, 'only one of url or service can be defined')] : []),
    ...(url ? urlErrors(`${path}.url`, url) : []),
    ...(service ? serviceErrors(`${path}.service`, service) : []),
  ]
}

function urlErrors(path: string, url: string): FieldError[] {
  const problem = requestURIProblem(url)
  if (problem) return [invalid(path, url, `must be a valid URL, e.g. https://example.com: ${problem}`)]
  return /^https:/i.test(url) ? [] : [invalid(path, url, "'https' is the only allowed URL scheme, e.g. https://example.com")]
}

function serviceErrors(fieldPath: string, { name, namespace, path, port }: NonNullable<ClientConfig['service']>): FieldError[] {
  return [
    ...dns1035LabelProblems(name).map((problem) => invalid(`${fieldPath}.name`, name, problem)),
    ...dnsLabelProblems(namespace).map((problem) => invalid(`${fieldPath}.namespace`, namespace, problem)),
    ...(path ? pathErrors(`${fieldPath}.path`, path) : []),
    ...(port !== undefined && (port < 1 || port > 65535)
      ? [invalid(`${fieldPath}.port`, port, 'must be between 1 and 65535, inclusive')]
      : []),
  ]
}

function pathErrors(fieldPath: string, path: string): FieldError[] {
  const problem = requestURIProblem(path)
  return [
    ...(problem ? [invalid(fieldPath, path, `must be a valid URL path e.g. /path/to/hook: ${problem}`)] : []),
    ...(path.startsWith('/') ? [] : [invalid(fieldPath, path, 'must start with "/" to be a valid URL path')]),
  ]
}
