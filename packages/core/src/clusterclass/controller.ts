import { ClusterClass, ClusterClassConditions, ExtensionConfig } from '@capstan/api'
import { type Controller, controller, watches } from '@capstan/controller'
import type { RuntimeClient } from '@capstan/extension'
import { keyOf } from '@capstan/kube'
import { changedByOthers } from '../changed-by-others.ts'
import { OwnedLegacyConditions } from './legacy-status.ts'
import { ClassesByExtension } from './indexes.ts'
import { reconcileClusterClass } from './reconcile.ts'
import { DiscoveredVariables } from './variables.ts'

export interface ClusterClassControllerOptions {
  /** Calls handlers that return the variables of external patches. Without it, these variables are not discovered. */
  readonly runtime: RuntimeClient | undefined
  /** Maximum number of ClusterClasses reconciled concurrently. Default: 10. */
  readonly concurrency?: number
}

/** Creates the controller of ClusterClasses. Clusters cannot use a class before it was reconciled. */
export function createClusterClassController({ runtime, concurrency = 10 }: ClusterClassControllerOptions): Controller {
  const discovered = new DiscoveredVariables(runtime)
  return controller({
    name: 'clusterclass',
    for: ClusterClass,
    when: changedByOthers(
      Object.values(ClusterClassConditions).map(({ type }) => type),
      OwnedLegacyConditions,
    ),
    watches: [watches(ExtensionConfig, ({ metadata }, cache) => cache.byIndex(ClassesByExtension, metadata.name).map(keyOf))],
    concurrency,
    reconcile: (key, context) => reconcileClusterClass(key, context, discovered),
  })
}
