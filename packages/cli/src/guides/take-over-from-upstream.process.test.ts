/**
 * Runs docs/guides/take-over-from-upstream.md with upstream's release, from its first command to its last, without the commands
 * of `notRun`.
 */
import { testGuide } from './test-guide.ts'

testGuide('take-over-from-upstream.md', {
  programs: ['kubectl', 'clusterctl'],
  withUpstream: true,
  notRun: {
    'npm run interop -- swap --only take-over': 'a suite of its own',
    'kubectl -n capi-system rollout status deployment/capi-controller-manager':
      'needs nodes that pull images; interop -- image runs them',
    'clusterctl move --to-directory': 'a backup before the page begins; interop -- upstream moves Clusters',
    'capstan hooks preflight': 'needs an extension; operate-extensions.md runs it',
  },
})
