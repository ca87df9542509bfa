/** Runs docs/guides/operate-extensions.md, from its first command to its last. */
import { testGuide } from './test-guide.ts'

testGuide('operate-extensions.md', { programs: ['kubectl', 'openssl', 'curl'] })
