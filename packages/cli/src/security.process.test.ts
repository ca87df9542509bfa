/** The guide docs/guides/security.md, from its first command to its last. */
import { testGuide } from './test-guide.ts'

testGuide('security.md', 'kubectl', 'curl')
