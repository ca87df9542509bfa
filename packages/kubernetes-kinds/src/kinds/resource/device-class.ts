import { type FieldError, invalid, subdomainProblems } from '@capstan/kube'
import type { BuiltinKind } from '../builtin-kind.ts'
import { ageColumn, nameColumn } from '../columns.ts'
import { isExtendedResource } from '../pod/resources.ts'
import type { DeviceClass } from '../schemas/types.ts'
import { same } from '../same.ts'
import { configurationErrors, MaxConfigurations } from './device-configuration.ts'
import { listErrors } from './lists.ts'
import { selectorErrors } from './selector.ts'

/** Upstream: pkg/registry/resource/deviceclass, v1.36. */
export const deviceclasses: BuiltinKind<DeviceClass> = {
  names: (name) => subdomainProblems(name, 'bytes'),
  generation: true,
  returnsDeleted: true,
  columns: [nameColumn, ageColumn],
  validate({ spec }, old) {
    const { extendedResourceName: name } = spec
    const isStored = old !== undefined && same(spec.config, old.spec.config)
    return [
      ...selectorErrors('spec.selectors', spec.selectors),
      ...listErrors('spec.config', spec.config, MaxConfigurations, (valuePath, config) =>
        configurationErrors(valuePath, config, isStored),
      ),
      ...nameErrors(name),
    ]
  },
}

const nameErrors = (name: string | undefined): FieldError[] =>
  name === undefined || isExtendedResource(name)
    ? []
    : [invalid('spec.extendedResourceName', name, 'must be a valid extended resource name')]
