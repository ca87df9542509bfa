/**
 * Runs the commands of docs/guides/install.md in order, except those of `notRun`, as a reader who has no checkout.
 */
import { testGuide } from './test-guide.ts'

testGuide('install.md', {
  programs: ['kubectl', 'clusterctl'],
  fromRegistry: true,
  notRun: {
    'kubectl -n capi-system rollout status deployment/capi-controller-manager':
      'needs nodes that pull images; interop -- image runs the image',
    'clusterctl upgrade apply --config clusterctl.yaml --contract v1beta2':
      'needs a newer release; interop -- clusterctl-capstan has one',
    'npm run interop -- clusterctl-capstan': 'is an interop suite, which runs separately',
  },
})
