/**
 * Tests tapes with the hook calls of a Cluster's lifecycle. One test sends the recorded requests again and compares the responses; the other
 * runs core with the tape instead of the extension.
 */
import {
  AfterClusterUpgrade,
  AfterControlPlaneInitialized,
  AfterControlPlaneUpgrade,
  BeforeClusterCreate,
  BeforeClusterDelete,
  BeforeClusterUpgrade,
  createCatalog,
  DiscoverVariables,
  GeneratePatches,
  hookCatalog,
  ValidateTopology,
} from '@capstan/api'
import {
  createRecorder,
  defineExtension,
  type Extension,
  extensionServer,
  holdFor,
  inProcess,
  on,
  parseTape,
  patchTemplates,
  proceedNow,
  proceedWith,
  resendTape,
  type Tape,
  tapeTransport,
  template,
} from '@capstan/extension'
import { VirtualClock } from '@capstan/kube'
import { expect, test } from 'vitest'
import { sampleExtension } from '../../../examples/sample-extension/extension.ts'
import { lifecycleOf, type LifecycleOptions } from './lifecycle-of.ts'

/** Returns an extension with patches, hooks that block once or twice, and a handler that throws. */
function busyExtension(): Extension {
  const callCounts = new Map<string, number>()
  const blockFirst = (count: number, seconds: number, message: string) => {
    const nth = callCounts.get(message) ?? 0
    callCounts.set(message, nth + 1)
    return nth < count ? holdFor(seconds, `${message} ${nth}`) : proceedNow()
  }
  return defineExtension({
    name: 'busy',
    handlers: [
      on(BeforeClusterCreate, { name: 'create' }, () => blockFirst(2, 5, 'quota')),
      on(AfterControlPlaneInitialized, { name: 'initialized' }, () => proceedNow()),
      on(BeforeClusterUpgrade, { name: 'before-upgrade' }, () => blockFirst(1, 5, 'backup')),
      on(AfterControlPlaneUpgrade, { name: 'after-control-plane', failurePolicy: 'Ignore' }, ({ request }) => {
        if (request.kubernetesVersion === 'v1.35.0') throw new Error('a bug')
        return blockFirst(1, 5, 'checks')
      }),
      on(AfterClusterUpgrade, { name: 'after-upgrade' }, () => proceedNow()),
      on(BeforeClusterDelete, { name: 'delete' }, () => blockFirst(1, 5, 'drain')),
      on(DiscoverVariables, { name: 'variables' }, () =>
        proceedWith({ variables: [{ name: 'adminPassword', required: false, schema: { openAPIV3Schema: { type: 'string' } } }] }),
      ),
      on(
        GeneratePatches,
        { name: 'patches' },
        patchTemplates([
          template({ kind: 'LocalMachineTemplate' }, ({ template, settings }) => {
            template.metadata.labels = { ...template.metadata.labels, region: settings.region! }
          }),
        ]),
      ),
      on(ValidateTopology, { name: 'validation' }, () => proceedNow()),
    ],
  })
}

async function recordLifecycle(
  extension: Extension,
  options: LifecycleOptions,
): Promise<{ trace: string; text: string; tape: Tape }> {
  let text = ''
  const file = { bytes: 0, append: async (chunk: string) => void (text += chunk), close: async () => {} }
  const report = (problem: string) => expect.fail(problem)
  const recorder = createRecorder(file, { clock: new VirtualClock(), report })
  const { trace, stuck, calls } = await lifecycleOf(extension, options)
  expect(stuck).toBeUndefined()
  calls.forEach(recorder.observe)
  await recorder.close()
  return { trace, text, tape: parseTape(text) }
}

test('the requests of a recorded lifecycle get the same responses when they are sent to the extension again', async () => {
  const { tape } = await recordLifecycle(sampleExtension(), {})
  const differing: unknown[] = []
  const transport = inProcess(extensionServer(sampleExtension()))
  const options = {
    server: { url: 'https://x' },
    catalog: createCatalog(hookCatalog),
    clock: new VirtualClock(),
    timeoutSeconds: 10,
  }
  let calls = 0
  for await (const { differences } of resendTape(tape, { ...options, transport })) {
    calls++
    differing.push(...differences)
  }
  expect(differing).toEqual([])
  expect(calls).toBe(tape.calls.length)
})

test('a tape, from which secrets are redacted, replaces the extension when core repeats the recorded lifecycle', async () => {
  const options: LifecycleOptions = {
    settings: { region: 'eu1', apiToken: 'canary' },
    variables: { adminPassword: 'canary' },
  }
  const { tape, trace, text } = await recordLifecycle(busyExtension(), options)
  expect(text).not.toContain('canary')
  expect(text).toContain('"adminPassword","value":"[redacted]"')
  // The tape has the responses to calls. `lifecycleOf` needs the extension only for its name, and for the handlers that the class names.
  const again = await lifecycleOf(busyExtension(), { ...options, between: () => tapeTransport(tape) })
  expect(again.stuck).toBeUndefined()
  // Only the extension can report errors thrown by handlers; core sees status 500 either way.
  const seenByCore = (story: string) => story.split('\n').filter((line) => !line.includes(' threw '))
  expect(trace).toContain(' threw Error: a bug')
  expect(again.trace.split('\n')).toEqual(seenByCore(trace))
})
