/** The kinds of `resource.k8s.io/v1`: devices, and claims to devices. Upstream: pkg/apis/resource and pkg/registry/resource, v1.36. */
import type { KindTable } from './builtin-kind.ts'
import { deviceclasses } from './resource/device-class.ts'
import { resourceclaimtemplates } from './resource/resource-claim-template.ts'
import { resourceclaims } from './resource/resource-claim.ts'
import { resourceslices } from './resource/resource-slice.ts'

export const resource: KindTable = { deviceclasses, resourceclaims, resourceclaimtemplates, resourceslices }
