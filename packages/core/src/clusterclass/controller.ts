import { ClusterClass } from '@capstan/api'
import { type Controller, controller } from '@capstan/controller'
import { ClassesByTemplate } from './indexes.ts'
import { reconcileClusterClass } from './reconcile.ts'

/** The controller of ClusterClasses: without it no Cluster can use one. */
export const createClusterClassController = (options: { readonly concurrency?: number } = {}): Controller =>
  controller({
    name: 'clusterclass',
    for: ClusterClass,
    indexes: [ClassesByTemplate] as never,
    concurrency: options.concurrency ?? 10,
    reconcile: reconcileClusterClass,
  })
