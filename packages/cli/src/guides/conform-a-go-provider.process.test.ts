/** Runs docs/guides/conform-a-go-provider.md, from its first command to its last, without the commands of `notRun`. */
import { testGuide } from './test-guide.ts'

testGuide('conform-a-go-provider.md', {
  programs: ['go', 'kubectl'],
  notRun: {
    'npx @capstan/cli xray AcmeMachine/NAME': 'needs an object that core does not accept; xray.test.ts runs the command',
  },
})
