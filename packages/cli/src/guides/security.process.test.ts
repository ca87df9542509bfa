/** Runs docs/guides/security.md, from its first command to its last, without the commands of `notRun`. */
import { testGuide } from './test-guide.ts'

testGuide('security.md', {
  programs: ['kubectl', 'curl'],
  notRun: {
    'npm run interop -- manifests': 'is an interop suite, which runs separately',
    'npm audit signatures': 'needs packages of the public registry',
    'npm run check': 'CI runs it in this checkout',
  },
})
