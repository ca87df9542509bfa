/**
 * ExtensionConfig as manifests from before v1beta2 write it: served, converted, and deprecated as upstream deprecates it.
 * Upstream: api/runtime/v1alpha1/extensionconfig_types.go and conversion.go, v1.14.
 */
import type { Infer, KindVersion, KubeObject, ObjectOf } from '@capstan/kube'
import { defineKind, s } from '@capstan/kube'
import { ageColumn } from '../../core/v1beta2/shared/columns.ts'
import { legacyConditions } from '../../core/v1beta2/shared/legacy-status.ts'
import type { ExtensionConfigSpec, ExtensionConfigStatus } from '../v1beta2/extension-config.ts'
import { callFields, clientConfigFields, extensionHandlersWith } from '../v1beta2/extension-config-fields.ts'

const spec = s.object({
  clientConfig: s.object(clientConfigFields).doc('How to reach the extension server: `url` or `service`, never both.'),
  ...callFields,
})

const handlers = extensionHandlersWith(s.int32())

const status = s.object({
  conditions: legacyConditions.optional(),
  handlers: handlers.optional(),
  v1beta2: s.object({ conditions: s.conditions() }).optional().doc('What status is in v1beta2.'),
})
type Status = Infer<typeof status>

const ExtensionConfigV1Alpha1 = defineKind({
  group: 'runtime.cluster.x-k8s.io',
  version: 'v1alpha1',
  kind: 'ExtensionConfig',
  plural: 'extensionconfigs',
  shortNames: ['ext'],
  categories: ['cluster-api'],
  scope: 'Cluster',
  doc: 'Registers a server of Runtime Extensions, so that core asks it which hooks it handles and calls them.',
  spec: spec.optional(),
  status,
  columns: [ageColumn],
})
interface ExtensionConfigV1Alpha1 extends ObjectOf<typeof ExtensionConfigV1Alpha1> {}

interface Stored extends KubeObject {
  readonly spec: ExtensionConfigSpec
  readonly status?: ExtensionConfigStatus
}

/** What is empty in one version is absent in the other; conditions have changed places. */
export const extensionConfigV1Alpha1: KindVersion<ExtensionConfigV1Alpha1, Stored> = {
  kind: ExtensionConfigV1Alpha1,
  deprecated: true,
  toStored: ({ spec, status }) => ({
    spec: spec ?? { clientConfig: {} },
    ...(status ? { status: storedStatus(status) } : {}),
  }),
  fromStored: ({ spec, status }) => ({ spec, ...(status ? { status: statusFrom(status) } : {}) }),
}

const storedStatus = ({ conditions, handlers, v1beta2 }: Status): ExtensionConfigStatus => ({
  ...(v1beta2?.conditions ? { conditions: v1beta2.conditions } : {}),
  // Zero is how this version says that there is no limit of its own.
  ...(handlers
    ? { handlers: handlers.map(({ timeoutSeconds, ...one }) => (timeoutSeconds ? { ...one, timeoutSeconds } : one)) }
    : {}),
  ...(conditions ? { deprecated: { v1beta1: { conditions } } } : {}),
})

function statusFrom({ conditions, handlers, deprecated }: ExtensionConfigStatus): Status {
  const legacy = deprecated?.v1beta1?.conditions
  return {
    ...(legacy ? { conditions: legacy } : {}),
    ...(handlers ? { handlers } : {}),
    ...(conditions ? { v1beta2: { conditions } } : {}),
  }
}
