import { invalid, parseQuantity, quantityText, subdomainProblems } from '@capstan/kube'
import type { BuiltinKind } from '../builtin-kind.ts'
import { labelSelector, problems } from '../checks.ts'
import { atLeastZero } from '../counts.ts'
import { immutable } from '../same.ts'
import type { CSIStorageCapacity } from '../schemas/types.ts'

/** Upstream: pkg/apis/storage and pkg/registry/storage/csistoragecapacity, v1.36. */
export const csistoragecapacities: BuiltinKind<CSIStorageCapacity> = {
  validate({ nodeTopology, storageClassName, capacity }, old) {
    if (old) {
      return [
        ...immutable('nodeTopology', nodeTopology, old.nodeTopology),
        ...immutable('storageClassName', storageClassName, old.storageClassName),
      ]
    }
    const quantity = capacity === undefined ? undefined : parseQuantity(String(capacity))
    return [
      ...labelSelector('nodeTopology', nodeTopology),
      ...problems('storageClassName', storageClassName, subdomainProblems(storageClassName)),
      ...(quantity && quantity.nano < 0n ? [invalid('capacity', quantityText(quantity), atLeastZero)] : []),
    ]
  },
}
