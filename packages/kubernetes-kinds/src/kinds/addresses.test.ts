import { invalid } from '@capstan/kube'
import { expect, test } from 'vitest'
import { bitsOf, blockErrors, contains, parseBlock } from './addresses.ts'
import { endpointIP } from './service/validate.ts'

test.each([
  ['1.2.3.4', 0x01020304n],
  ['::1', 1n],
  ['::ffff:1.2.3.4', 0xffff01020304n],
  ['2001:db8::', 0x20010db8n << 96n],
])('%s is parsed to the bits %d', (address, bits) => {
  expect(bitsOf(address)).toBe(bits)
})

test.each([
  ['10.0.0.0/8', '10.255.0.1', true],
  ['10.0.0.0/8', '11.0.0.1', false],
  ['10.0.0.0/8', '::1', false],
  ['2001:db8::/32', '2001:db8:1::5', true],
  ['0.0.0.0/0', '8.8.8.8', true],
])('the block %s contains %s: %s', (block, address, expected) => {
  expect(contains(parseBlock(block)!, address)).toBe(expected)
})

test.each(['10.0.0.0', '10.0.0.0/33', '10.0.0.0/8/9', 'x/8', '2001:db8::/129', 'fe80::1%eth0/64'])(
  '%s is not a CIDR block',
  (text) => {
    expect(parseBlock(text)).toBeUndefined()
  },
)

test('bits beyond the prefix are rejected, except in fields that allow them', () => {
  expect(blockErrors('spec.x', '10.0.0.1/8', true)).toEqual([])
  expect(blockErrors('spec.x', '10.0.0.1/8', false)).toEqual([
    invalid('spec.x', '10.0.0.1/8', 'must not have bits set beyond the prefix length'),
  ])
})

test.each(['10.0.0.1', '2001:db8::1'])('%s is valid as the address of an endpoint', (address) => {
  expect(endpointIP('ip', address)).toEqual([])
})

// As upstream, which calls IsValidIPForLegacyField and then ValidateEndpointIP.
test.each([
  ['0.0.0.0', 'may not be unspecified (0.0.0.0)'],
  ['127.0.0.1', 'may not be in the loopback range (127.0.0.0/8, ::1/128)'],
  ['0:0:0:0:0:0:0:1', 'may not be in the loopback range (127.0.0.0/8, ::1/128)'],
  ['::ffff:127.0.0.1', 'may not be in the loopback range (127.0.0.0/8, ::1/128)'],
  ['fe90::1', 'may not be in the link-local range (169.254.0.0/16, fe80::/10)'],
  ['ff02::1', 'may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)'],
  ['2001:db8::1%eth0', 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'],
])('%s as the address of an endpoint has the error "%s"', (address, text) => {
  expect(endpointIP('ip', address)).toEqual([invalid('ip', address, text)])
})
