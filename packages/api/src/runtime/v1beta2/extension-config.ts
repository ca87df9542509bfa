/** The kind ExtensionConfig, which registers an extension server. Upstream: api/runtime/v1beta2/extensionconfig_types.go, v1.14. */
import type { Infer, ObjectOf } from '@capstan/kube'
import { column, conditionTypes, defineKind, s } from '@capstan/kube'
import { olderVersions } from '../../conversion/older-versions.ts'
import { ageColumn, pausedColumn } from '../../core/v1beta2/shared/columns.ts'
import { coreLabels } from '../../core/v1beta2/shared/core-labels.ts'
import { legacyStatus } from '../../core/v1beta2/shared/legacy-status.ts'
import { nonEmpty } from '../../core/v1beta2/shared/limits.ts'
import { defaultExtensionConfig, extensionConfigErrors } from './admission/extension-config.ts'
import { callFields, clientConfigFields, extensionHandlers } from './extension-config-fields.ts'

const clientConfig = s
  .object(clientConfigFields, nonEmpty)
  .doc('How to connect to the extension server: either `url` or `service`.')
export interface ClientConfig extends Infer<typeof clientConfig> {}

export type ExtensionHandler = Infer<typeof extensionHandlers>[number]

const extensionConfigSpec = s.object({
  clientConfig,
  ...callFields,
})
export interface ExtensionConfigSpec extends Infer<typeof extensionConfigSpec> {}

const extensionConfigStatus = s.object(
  {
    conditions: s.conditions(),
    handlers: extensionHandlers.optional(),
    deprecated: legacyStatus(),
  },
  nonEmpty,
)
export interface ExtensionConfigStatus extends Infer<typeof extensionConfigStatus> {}

export const ExtensionConfigConditions = conditionTypes({
  Discovered: ['Discovered', 'NotDiscovered'],
  /** Present only as long as a handler is registered for a deprecated version of a hook. Upstream has no such condition. */
  DeprecatedHooks: ['DeprecatedVersionsInUse'],
  Paused: ['Paused', 'NotPaused'],
})

export const ExtensionConfig = defineKind({
  group: 'runtime.cluster.x-k8s.io',
  version: 'v1beta2',
  kind: 'ExtensionConfig',
  plural: 'extensionconfigs',
  shortNames: ['ext'],
  categories: ['cluster-api'],
  scope: 'Cluster',
  doc: 'Registers a server of Runtime Extensions: core discovers its handlers and calls them.',
  spec: extensionConfigSpec,
  status: extensionConfigStatus,
  columns: [
    pausedColumn,
    column('Discovered', '.status.conditions[?(@.type=="Discovered")].status', {
      description: 'Whether the handlers of the server were discovered',
    }),
    ageColumn,
  ],
  labels: coreLabels,
  versions: olderVersions('runtime.cluster.x-k8s.io', 'ExtensionConfig', 'Cluster'),
  default: defaultExtensionConfig,
  validate: extensionConfigErrors,
})
export interface ExtensionConfig extends ObjectOf<typeof ExtensionConfig> {
  spec: ExtensionConfigSpec
  status?: ExtensionConfigStatus
}
