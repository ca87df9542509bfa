import { equal, forbidden, required } from '@capstan/kube'
import type { BuiltinKind } from '../builtin-kind.ts'
import { ageColumn, column, nameColumn, text } from '../columns.ts'
import type { VolumeAttributesClass } from '../schemas/types.ts'
import { parameterErrors, provisionerErrors } from './provisioner.ts'

/** Upstream: pkg/apis/storage and pkg/registry/storage/volumeattributesclass, v1.36. */
export const volumeattributesclasses: BuiltinKind<VolumeAttributesClass> = {
  returnsDeleted: true,
  columns: [nameColumn, column('DriverName', (o) => text(o, 'driverName')), ageColumn],
  validate({ driverName, parameters = {} }, old) {
    const isChanged = old !== undefined && !equal(parameters, old.parameters ?? {})
    return [
      ...(old && driverName !== old.driverName ? [forbidden('driverName', 'updates to driverName are forbidden.')] : []),
      ...(isChanged ? [forbidden('parameters', 'updates to parameters are forbidden.')] : []),
      ...provisionerErrors('driverName', driverName),
      ...parameterErrors('parameters', parameters),
      ...(Object.keys(parameters).length === 0 ? [required('parameters', 'must contain at least one key/value pair')] : []),
    ]
  },
}
