/** The guide docs/guides/take-over-from-upstream.md, from its first command to its last. */
import { testGuide } from './test-guide.ts'

testGuide('take-over-from-upstream.md', 'kubectl')
