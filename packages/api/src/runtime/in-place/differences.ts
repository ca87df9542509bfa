/** Compares values by path. Pure. */
import { equal, isRecord } from '@capstan/kube'
import type { MachineSpec } from '../../core/v1beta2/shared/machine-template.ts'

/**
 * Returns the paths at which two values differ, without the values, because a bootstrap config may contain secrets. `path` is the path of
 * the two values themselves. Fields are compared in alphabetical order; the items of two lists are compared one by one if the lists have
 * the same length.
 */
export function differingPaths(from: unknown, to: unknown, path: string): string[] {
  if (equal(from, to)) return []
  if (isRecord(from) && isRecord(to)) {
    return [...new Set([...Object.keys(from), ...Object.keys(to)])]
      .sort()
      .flatMap((name) => differingPaths(from[name], to[name], memberPath(path, name)))
  }
  if (Array.isArray(from) && Array.isArray(to) && from.length === to.length) {
    return from.flatMap((item, index) => differingPaths(item, to[index], `${path}[${index}]`))
  }
  return [path]
}

const memberPath = (path: string, name: string): string =>
  /^[A-Za-z_$][\w$]*$/.test(name) ? `${path}.${name}` : `${path}[${JSON.stringify(name)}]`

/**
 * The fields of a Machine's spec. An extension must cover changes of compared fields. A field is ignored if it never changes, if it is a
 * reference, whose object is compared separately, or if its changes are propagated to existing Machines without an update.
 * Upstream: internal/util/inplace, CleanupMachineSpecForDiff, v1.14.
 */
const specFields: Readonly<Record<keyof Required<MachineSpec>, 'compared' | 'ignored'>> = {
  clusterName: 'ignored',
  bootstrap: 'ignored',
  infrastructureRef: 'ignored',
  version: 'compared',
  providerID: 'ignored',
  failureDomain: 'compared',
  minReadySeconds: 'ignored',
  readinessGates: 'ignored',
  deletion: 'ignored',
  taints: 'ignored',
}

/** Returns the paths at which compared fields of two Machine specs differ. In them, an empty string equals an absent string, as in Go. */
export function machineSpecDifferences(from: MachineSpec, to: MachineSpec, path: string): string[] {
  const compared = (spec: MachineSpec) =>
    Object.fromEntries(Object.entries(spec).filter(([name, value]) => isCompared(name) && value !== ''))
  return differingPaths(compared(from), compared(to), path)
}

const isCompared = (name: string): boolean => (specFields as Record<string, string>)[name] === 'compared'
