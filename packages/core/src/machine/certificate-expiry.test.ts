import type { Machine } from '@capstan/api'
import { aMachine } from '@capstan/testing'
import { expect, test } from 'vitest'
import { certificateExpiry } from './certificate-expiry.ts'
import type { MachineIO, MachineScope } from './scope.ts'

/** Returns `status.certificatesExpiryDate` of a control plane Machine after the phase `certificateExpiry`, with `text` as the expiry annotation. */
async function expiryOf(text: string): Promise<string | undefined> {
  const annotations = { 'machine.cluster.x-k8s.io/certificates-expiry': text }
  const labels = { 'cluster.x-k8s.io/control-plane': '' }
  const machine: Machine = aMachine({
    metadata: { labels, annotations },
    status: { certificatesExpiryDate: '2029-01-01T00:00:00Z' },
  })
  const scope = { machine, bootstrap: { state: 'none' } } as MachineScope
  await certificateExpiry(scope, {} as MachineIO).catch(() => undefined)
  return machine.status?.certificatesExpiryDate
}

test.each([
  ['2030-02-28T23:00:00Z', '2030-02-28T23:00:00Z'],
  ['2030-02-28T23:00:00.5+01:00', '2030-02-28T22:00:00Z'],
])('the annotation %s sets the expiry date %s', async (text, date) => expect(await expiryOf(text)).toBe(date))

// Go's time.Parse rejects these texts.
test.each(['2030-02-30T00:00:00Z', '2030-02-28T24:00:00Z', '2030-02-28t00:00:00z', '2030-02-28', 'soon'])(
  'the existing expiry date stays when the annotation is %s',
  async (text) => expect(await expiryOf(text)).toBe('2029-01-01T00:00:00Z'),
)
