import { duplicate, type FieldError, invalid } from '@capstan/kube'
import type { BuiltinKind } from '../builtin-kind.ts'
import { oneOf } from '../checks.ts'
import { immutable } from '../same.ts'
import { ageColumn, at, column, list, nameColumn, orNone } from '../columns.ts'
import type { CSIDriver, CSIDriverSpec, StorageV1TokenRequest } from '../schemas/types.ts'

const TenMinutes = 600
const flag = { type: 'boolean' } as const

/** Upstream: pkg/apis/storage and pkg/registry/storage/csidriver, v1.36. */
export const csidrivers: BuiltinKind<CSIDriver> = {
  returnsDeleted: true,
  generation: true,
  columns: [
    nameColumn,
    column('AttachRequired', (o) => at(o, 'spec', 'attachRequired') !== false, flag),
    column('PodInfoOnMount', (o) => at(o, 'spec', 'podInfoOnMount') === true, flag),
    column('StorageCapacity', (o) => at(o, 'spec', 'storageCapacity') === true, flag),
    column('TokenRequests', (o) => {
      const requests = at(o, 'spec', 'tokenRequests') as StorageV1TokenRequest[] | undefined
      return requests ? requests.map(({ audience }) => audience).join(',') : '<unset>'
    }),
    column('RequiresRepublish', (o) => at(o, 'spec', 'requiresRepublish') === true, flag),
    column('Modes', (o) => orNone(list<string>(o, 'spec', 'volumeLifecycleModes').join(','))),
    ageColumn,
  ],
  default({ spec }) {
    spec.attachRequired ??= true
    spec.podInfoOnMount ??= false
    spec.storageCapacity ??= false
    if (!spec.volumeLifecycleModes?.length) spec.volumeLifecycleModes = ['Persistent']
    spec.fsGroupPolicy ??= 'ReadWriteOnceWithFSType'
    spec.requiresRepublish ??= false
    spec.seLinuxMount ??= false
  },
  prepare({ metadata, spec }, old) {
    // A new object has no generation: the first change of its spec sets it to 1.
    if (!old) delete metadata.generation
    // This field belongs to a disabled feature.
    delete spec.preventPodSchedulingIfMissing
  },
  warnings: ({ spec: { tokenRequests = [], serviceAccountTokenInSecrets } }) =>
    tokenRequests.length > 0 && serviceAccountTokenInSecrets === undefined
      ? [
          'spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes',
        ]
      : [],
  validate({ spec }, old) {
    return [
      ...specErrors(spec),
      // The field is `attachRequired`, but upstream's error contains this path.
      ...(old ? immutable('spec.attachedRequired', spec.attachRequired, old.spec.attachRequired) : []),
      ...(old ? immutable('spec.volumeLifecycleModes', spec.volumeLifecycleModes, old.spec.volumeLifecycleModes) : []),
    ]
  },
}

function specErrors(spec: CSIDriverSpec): FieldError[] {
  const { fsGroupPolicy, tokenRequests = [], volumeLifecycleModes = [] } = spec
  const period = spec.nodeAllocatableUpdatePeriodSeconds
  const inSecrets = spec.serviceAccountTokenInSecrets
  const text = 'serviceAccountTokenInSecrets is set but no tokenRequests are specified'
  return [
    ...oneOf('spec.fsGroupPolicy', fsGroupPolicy, ['File', 'None', 'ReadWriteOnceWithFSType']),
    ...tokenErrors(tokenRequests),
    ...volumeLifecycleModes.flatMap((mode) => oneOf('spec.volumeLifecycleModes', mode, ['Persistent', 'Ephemeral'])),
    ...(period !== undefined && period < 10
      ? [invalid('spec.nodeAllocatableUpdatePeriodSeconds', period, 'must be greater than or equal to 10 seconds')]
      : []),
    ...(inSecrets !== undefined && tokenRequests.length === 0
      ? [invalid('spec.serviceAccountTokenInSecrets', inSecrets, text)]
      : []),
  ]
}

function tokenErrors(requests: readonly StorageV1TokenRequest[]): FieldError[] {
  const audiences = new Set<string>()
  return requests.flatMap(({ audience, expirationSeconds: seconds }, index) => {
    const path = `spec.tokenRequests[${index}]`
    if (audiences.has(audience)) return [duplicate(`${path}.audience`, audience)]
    audiences.add(audience)
    if (seconds === undefined) return []
    if (seconds < TenMinutes) {
      return [invalid(`${path}.expirationSeconds`, seconds, 'may not specify a duration less than 10 minutes')]
    }
    return seconds > 2 ** 32
      ? [invalid(`${path}.expirationSeconds`, seconds, 'may not specify a duration larger than 2^32 seconds')]
      : []
  })
}
