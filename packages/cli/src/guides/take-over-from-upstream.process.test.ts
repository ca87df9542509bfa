/**
 * Runs the commands of docs/guides/take-over-from-upstream.md in order, with upstream's release, except the commands of `notRun`.
 */
import { testGuide } from './test-guide.ts'

testGuide('take-over-from-upstream.md', {
  programs: ['kubectl', 'clusterctl'],
  withUpstream: true,
  notRun: {
    'npm run interop -- swap --only take-over': 'is an interop suite, which runs separately',
    'kubectl -n capi-system rollout status deployment/capi-controller-manager':
      'needs nodes that pull images; interop -- image runs the image',
    'clusterctl move --to-directory': 'is a backup before the first step; interop -- upstream moves Clusters',
    'capstan hooks preflight': 'needs an extension; operate-extensions.md runs the command',
  },
})
