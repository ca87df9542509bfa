/** The guide docs/guides/install.md, from its first command to its last. */
import { testGuide } from './test-guide.ts'

testGuide('install.md', 'kubectl')
