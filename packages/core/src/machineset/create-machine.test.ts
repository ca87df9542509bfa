import type { MachineSet } from '@capstan/api'
import type { Random } from '@capstan/kube'
import { expect, test } from 'vitest'
import { createMachine } from './create-machine.ts'
import type { MachineSetIO, MachineSetScope } from './scope.ts'

const random: Random = { next: () => 0 }

// Upstream: computeDesiredMachine, v1.14. Our webhook rejects the first template; upstream's webhook rejects both.
test.each([
  ['static', 'cannot generate Machine name: {{ .random }} is missing in machineNaming.template'],
  [
    '{{ .random }}-{{ .other.name }}',
    'failed to generate Machine name: rendering template: template: template name generator:1:23: executing "template name generator" at <.other.name>: map has no entry for key "other"',
  ],
])('records a creation failure when the naming template %j gives no name', async (template, message) => {
  const machineSet = { metadata: { name: 'set' }, spec: { clusterName: 'demo', machineNaming: { template } } }
  const scope = { machineSet: machineSet as MachineSet } as MachineSetScope
  const found = { state: 'found' } as never
  await expect(
    createMachine(scope, { bootstrapTemplate: found, infrastructureTemplate: found }, { random } as MachineSetIO),
  ).rejects.toThrow(`failed to create Machine: failed to compute desired Machine: ${message}`)
  expect(scope.creationFailure).toEqual({ reason: 'MachineCreationFailed', message })
})
