/** Suites of whole processes, and against binaries that are not ours. `npm run interop [-- SUITE…]`; says plainly which suite could not run, and why. */
import { killSuite } from '../interop/kill.ts'
import { kubectlSuite } from '../interop/kubectl.ts'
import { managerSuite } from '../interop/manager.ts'

const suites: Readonly<Record<string, () => Promise<{ passed: number; failed: number }>>> = {
  kubectl: kubectlSuite,
  kill: killSuite,
  manager: managerSuite,
}

const asked = process.argv.slice(2)
const unknown = asked.filter((name) => !suites[name])
if (unknown.length > 0) {
  console.error(`There is no interop suite ${unknown.join(', ')}: there are ${Object.keys(suites).join(', ')}`)
  process.exit(2)
}

let failures = 0
for (const name of asked.length > 0 ? asked : Object.keys(suites)) {
  console.log(`interop ${name}`)
  try {
    const { passed, failed } = await suites[name]!()
    console.log(`${name}: ${passed} passed, ${failed} failed`)
    failures += failed
  } catch (err) {
    console.error(`${name}: could not run: ${err instanceof Error ? err.message : String(err)}`)
    failures++
  }
}
process.exitCode = failures === 0 ? 0 : 1
