import { ClusterClass, ClusterClassConditions, ExtensionConfig } from '@capstan/api'
import { type Controller, controller, watches } from '@capstan/controller'
import type { RuntimeClient } from '@capstan/extension'
import { keyOf } from '@capstan/kube'
import { othersChange } from '../others-change.ts'
import { ClassesByExtension, ClassesByTemplate } from './indexes.ts'
import { reconcileClusterClass } from './reconcile.ts'
import { DiscoveredVariables } from './variables.ts'

export interface ClusterClassControllerOptions {
  /** Handlers that tell the variables of external patches. */
  readonly runtime: RuntimeClient
  readonly concurrency?: number
}

/** The controller of ClusterClasses: without it no Cluster can use one. */
export function createClusterClassController({ runtime, concurrency = 10 }: ClusterClassControllerOptions): Controller {
  const discovered = new DiscoveredVariables(runtime)
  return controller({
    name: 'clusterclass',
    for: ClusterClass,
    when: othersChange(Object.values(ClusterClassConditions).map(({ type }) => type)),
    watches: [watches(ExtensionConfig, ({ metadata }, cache) => cache.byIndex(ClassesByExtension, metadata.name).map(keyOf))],
    indexes: [ClassesByTemplate, ClassesByExtension] as never,
    concurrency,
    reconcile: (key, context) => reconcileClusterClass(key, context, discovered),
  })
}
