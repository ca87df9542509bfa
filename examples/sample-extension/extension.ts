/**
 * The sample extension, with handlers for six lifecycle hooks. By default a new Cluster with a topology waits two seconds, to simulate work
 * of the extension.
 */
import {
  AfterClusterUpgrade,
  AfterControlPlaneInitialized,
  AfterControlPlaneUpgrade,
  BeforeClusterCreate,
  BeforeClusterDelete,
  BeforeClusterUpgrade,
} from '@capstan/api'
import { defineExtension, type Extension, holdFor, on, proceedNow } from '@capstan/extension'

export function sampleExtension(): Extension {
  /** Uids of Clusters for which core has called BeforeClusterCreate: the first response blocks, the next one allows the creation. */
  const prepared = new Set<string>()

  return defineExtension({
    name: 'sample',
    handlers: [
      on(BeforeClusterCreate, { name: 'before-cluster-create' }, ({ request, settings }) => {
        const { uid, name } = request.cluster.metadata
        if (prepared.has(uid)) return proceedNow()
        prepared.add(uid)
        return holdFor(secondsToWait(settings), `preparing for ${name}`)
      }),

      on(AfterControlPlaneInitialized, { name: 'after-control-plane-initialized' }, ({ request, log }) => {
        log.info('Control plane is initialized', { cluster: request.cluster.metadata.name })
        return proceedNow()
      }),

      on(BeforeClusterUpgrade, { name: 'before-cluster-upgrade' }, ({ request, log }) => {
        log.info('Upgrade begins', { from: request.fromKubernetesVersion, to: request.toKubernetesVersion })
        return proceedNow()
      }),

      on(AfterControlPlaneUpgrade, { name: 'after-control-plane-upgrade' }, ({ request, log }) => {
        log.info('Control plane is upgraded', { version: request.kubernetesVersion })
        return proceedNow()
      }),

      on(AfterClusterUpgrade, { name: 'after-cluster-upgrade' }, ({ request, log }) => {
        log.info('Cluster is upgraded', { version: request.kubernetesVersion })
        return proceedNow()
      }),

      on(BeforeClusterDelete, { name: 'before-cluster-delete' }, ({ request }) => {
        prepared.delete(request.cluster.metadata.uid)
        return proceedNow()
      }),
    ],
  })
}

/** Returns `settings.waitSeconds` of the ExtensionConfig; 2 unless it is a whole number from 1 to 3600. */
function secondsToWait({ waitSeconds }: { readonly [name: string]: string }): number {
  const seconds = Number(waitSeconds)
  return Number.isInteger(seconds) && seconds > 0 && seconds <= 3600 ? seconds : 2
}
