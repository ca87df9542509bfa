/** Runs docs/guides/change-a-hook.md, from its first command to its last. */
import { testGuide } from './test-guide.ts'

testGuide('change-a-hook.md', { programs: ['kubectl', 'openssl'] })
