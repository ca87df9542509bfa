import {
  appendAll,
  duplicate,
  type FieldError,
  invalid,
  qualifiedNameProblems,
  required,
  subdomainProblems,
  tooLong,
} from '@capstan/kube'
import type { BuiltinKind } from '../builtin-kind.ts'
import { problems } from '../checks.ts'
import { nonNegative } from '../counts.ts'
import { nullIfNone } from '../go-nulls.ts'
import { same } from '../same.ts'
import { ageColumn, column, list, nameColumn } from '../columns.ts'
import type { CSINode, CSINodeDriver } from '../schemas/types.ts'

const MaxNodeID = 256

/** Upstream: pkg/apis/storage and pkg/registry/storage/csinode, v1.36. */
export const csinodes: BuiltinKind<CSINode> = {
  returnsDeleted: true,
  columns: [nameColumn, column('Drivers', (o) => list(o, 'spec', 'drivers').length, { type: 'integer' }), ageColumn],
  default({ spec }) {
    nullIfNone(spec, 'drivers')
    for (const driver of spec.drivers ?? []) nullIfNone(driver, 'topologyKeys')
  },
  validate({ spec }, old) {
    const drivers = spec.drivers ?? []
    const names = new Set<string>()
    const byName = Map.groupBy(drivers, ({ name }) => name)
    return [
      ...drivers.flatMap((driver, index) => driverErrors(`spec.drivers[${index}]`, driver, names)),
      ...(old?.spec.drivers ?? []).flatMap((oldDriver) =>
        (byName.get(oldDriver.name) ?? []).flatMap((driver) => changedErrors(driver, oldDriver)),
      ),
    ]
  },
}

function driverErrors(path: string, driver: CSINodeDriver, names: Set<string>): FieldError[] {
  const { name, nodeID, allocatable, topologyKeys } = driver
  const errors = csiDriverNameErrors(`${path}.name`, name)
  if (nodeID === '') errors.push(required(`${path}.nodeID`))
  if (nodeID.length > MaxNodeID) errors.push(invalid(`${path}.nodeID`, nodeID, `must be ${MaxNodeID} characters or less`))
  if (allocatable) appendAll(errors, nonNegative(`${path}.allocatable`, allocatable, 'count'))
  if (names.has(name)) errors.push(duplicate(`${path}.name`, name))
  names.add(name)
  const keys = new Set<string>()
  for (const key of topologyKeys ?? []) {
    if (key === '') errors.push(required(path))
    if (keys.has(key)) errors.push(duplicate(path, key))
    keys.add(key)
    appendAll(errors, problems(path, key, qualifiedNameProblems(key)))
  }
  return errors
}

export function csiDriverNameErrors(path: string, name: string): FieldError[] {
  if (name === '') return [required(path)]
  return [...(name.length > 63 ? [tooLong(path, 63)] : []), ...problems(path, name, subdomainProblems(name.toLowerCase()))]
}

/** Returns an error if a field of the driver other than `allocatable` has changed. */
function changedErrors(driver: CSINodeDriver, old: CSINodeDriver): FieldError[] {
  if (same({ ...driver, allocatable: undefined }, { ...old, allocatable: undefined })) return []
  // Upstream prints its Go struct.
  const badValue = { Name: driver.name, NodeID: driver.nodeID, TopologyKeys: driver.topologyKeys ?? null, Allocatable: null }
  return [invalid('spec.drivers', badValue, 'field is immutable')]
}
