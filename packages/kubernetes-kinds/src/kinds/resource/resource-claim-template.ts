import { qualifiedNameProblems } from '@capstan/kube'
import type { BuiltinKind } from '../builtin-kind.ts'
import { labels, problems } from '../checks.ts'
import { ageColumn, nameColumn } from '../columns.ts'
import type { ResourceClaimTemplate } from '../schemas/types.ts'
import { adminAccessErrors, adminAccessRequestPath } from './admin-access.ts'
import { defaultRequests, deviceClaimErrors } from './device-requests.ts'
import { immutableStruct } from './immutable-struct.ts'

/** Upstream: pkg/registry/resource/resourceclaimtemplate, v1.36. */
export const resourceclaimtemplates: BuiltinKind<ResourceClaimTemplate> = {
  returnsDeleted: true,
  columns: [nameColumn, ageColumn],
  default({ spec }) {
    defaultRequests(spec.spec.devices)
  },
  validate({ metadata: { namespace }, spec }, old, { server }) {
    const { metadata, spec: claim } = spec
    return [
      ...(old ? [] : adminAccessErrors(server, namespace, adminAccessRequestPath(claim.devices))),
      ...labels('spec.metadata.labels', metadata.labels),
      ...Object.keys(metadata.annotations ?? {}).flatMap((key) =>
        problems('spec.metadata.annotations', key, qualifiedNameProblems(key.toLowerCase())),
      ),
      ...deviceClaimErrors('spec.spec.devices', claim.devices),
      ...(old ? immutableStruct('spec', 'resource/v1.ResourceClaimTemplateSpec', spec, old.spec) : []),
    ]
  },
}
