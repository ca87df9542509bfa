/** Runs docs/guides/operate.md, from its first command to its last, without the commands of `notRun`. */
import { testGuide } from './test-guide.ts'

testGuide('operate.md', {
  programs: ['kubectl', 'clusterctl', 'curl'],
  notRun: {
    'clusterctl move --to-directory':
      'is a backup of a real API server; `npm run interop -- upstream` tests `clusterctl move --to-kubeconfig`',
  },
})
