/** The guide docs/guides/operate.md, from its first command to its last. */
import { testGuide } from './test-guide.ts'

testGuide('operate.md', 'kubectl', 'curl')
