/**
 * Runs the commands of docs/guides/take-over-from-upstream.md in order, except the commands of `notRun`. clusterctl installs upstream's
 * release from a local folder.
 */
import { testGuide } from './test-guide.ts'

testGuide('take-over-from-upstream.md', {
  programs: ['kubectl', 'clusterctl'],
  withUpstream: true,
  notRun: {
    'npm run interop -- swap --only take-over': 'is an interop suite, which runs separately',
    'kubectl -n capi-system rollout status deployment/capi-controller-manager':
      'needs nodes that pull images; npm run interop -- image runs the image',
    'clusterctl move --to-directory':
      'has nothing to back up, because this test creates no Clusters; npm run interop -- upstream moves Clusters',
    'capstan hooks preflight': 'has nothing to check without an extension; the test of operate-extensions.md runs the command',
  },
})
