/** The guide docs/guides/conform-a-go-provider.md, from its first command to its last. */
import { testGuide } from './test-guide.ts'

testGuide('conform-a-go-provider.md', 'go', 'kubectl')
