/** Fields of ExtensionConfigs. */
import { s } from '@capstan/kube'
import { labelSelector } from '../../core/v1beta2/shared/label-selector.ts'

export const clientConfigFields = {
  caBundle: s
    .string({ format: 'byte', minLength: 1, maxLength: 51200 })
    .optional()
    .doc('CA certificates (PEM) that verify the certificate of the server; the CA certificates of the system when absent.'),
  service: s
    .object({
      name: s.string({ minLength: 1, maxLength: 63 }),
      namespace: s.string({ minLength: 1, maxLength: 63 }),
      path: s.string({ minLength: 1, maxLength: 512 }).optional().doc('Prefix of the paths of the hooks.'),
      port: s.int32().optional().doc('Port of the Service; 443 when absent.'),
    })
    .optional()
    .doc('A Service in the management cluster.'),
  url: s
    .string({ minLength: 1, maxLength: 512 })
    .optional()
    .doc('URL of the server: scheme https, a host, optionally a port and a prefix of the paths of the hooks.'),
}

/** Fields that select objects and configure calls. */
export const callFields = {
  namespaceSelector: labelSelector
    .optional()
    .doc('Selects the namespaces for whose objects the server is called; all namespaces when absent or empty.'),
  settings: s.map(s.string()).optional().doc('Settings that are sent to the extension with every call except Discovery.'),
}

export const extensionHandlers = s
  .list(
    s.object({
      failurePolicy: s
        .enum('Ignore', 'Fail')
        .optional()
        .doc('With Ignore, a call without a valid response counts as a success without effect. Default: Fail.'),
      name: s.string({ minLength: 1, maxLength: 512 }).doc('`<handler>.<extensionconfig>`, unique among all extension servers.'),
      requestHook: s.object({
        apiVersion: s.string({ minLength: 1, maxLength: 512 }).doc('Group and version of the hook.'),
        hook: s.string({ minLength: 1, maxLength: 256 }).doc('Name of the hook.'),
      }),
      timeoutSeconds: s.int32({ minimum: 1 }).optional().doc('Timeout of a call; 10 when absent.'),
    }),
    { maxItems: 512 },
  )
  .listMap('name')
  .doc('Handlers of the extension server, as returned by the last successful discovery.')
