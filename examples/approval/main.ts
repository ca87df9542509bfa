import { BeforeClusterUpgrade } from '@capstan/api'
import { defineExtension, holdFor, on, proceedNow, runExtension } from '@capstan/extension'

await runExtension(
  defineExtension({
    name: 'approval',
    handlers: [
      on(BeforeClusterUpgrade, { name: 'wait-for-approval' }, ({ request: { cluster, toKubernetesVersion } }) => {
        const approved = cluster.metadata.annotations?.['example.com/approved-version'] === toKubernetesVersion
        return approved ? proceedNow() : holdFor(60, `Upgrade to ${toKubernetesVersion} waits for approval`)
      }),
    ],
  }),
)
