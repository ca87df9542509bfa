import type { NetworkInterfaceInfo } from 'node:os'
import { expect, test } from 'vitest'
import { advertisedAddress } from './advertised-address.ts'

const address = (text: string, internal = false): NetworkInterfaceInfo => ({
  address: text,
  internal,
  netmask: '',
  mac: '',
  cidr: null,
  ...(text.includes(':') ? { family: 'IPv6', scopeid: 0 } : { family: 'IPv4' }),
})
const loopback = { lo: [address('127.0.0.1', true), address('::1', true)] }
const machine = { ...loopback, eth0: [address('fe80::1'), address('2001:db8::1'), address('169.254.0.7'), address('192.0.2.7')] }

test.each([
  ['127.0.0.1', machine, '192.0.2.7'],
  ['0.0.0.0', machine, '192.0.2.7'],
  ['::', machine, '192.0.2.7'],
  ['::1', machine, '192.0.2.7'],
  ['198.51.100.1', machine, '198.51.100.1'],
  ['127.0.0.1', { ...loopback, eth0: [address('fe80::1'), address('2001:db8::1')] }, '2001:db8::1'],
  ['127.0.0.1', loopback, '127.0.0.1'],
])('for bind address %s and interfaces %j returns %s', (bindAddress, interfaces, expected) => {
  expect(advertisedAddress(bindAddress, interfaces)).toBe(expected)
})
