import { describe, expect, it, test } from 'vitest'
import {
  compareVersions,
  isKubernetesVersion,
  isUpgrade,
  compareWithBuild,
  parseVersion,
  versionText,
  withVersionPrefix,
} from './versions.ts'

describe('compareWithBuild', () => {
  test.each([
    ['v1.36.0', 'v1.36.0', 0],
    ['v1.35.9', 'v1.36.0', -1],
    ['v1.36.0', 'v1.36.0-rc.1', 1],
    ['1.36', 'v1.36.0', 0],
    ['v1.36.0+1', 'v1.36.0+2', -1],
    ['v1.36.0+2', 'v1.36.0+10', -1],
    ['v1.36.0+1', 'v1.36.0', 1],
    ['v1.36.0+1.1', 'v1.36.0+1', 1],
    ['v1.36.0+1', 'v1.36.0+abc', -1],
    ['v1.36.0+abc', 'v1.36.0+abc', 0],
    ['v1.36.0+abc', 'v1.36.0+xyz', 'differ'],
    ['v1.37.0+abc', 'v1.36.0+xyz', 1],
  ])('of %s and %s returns %s', (a, b, order) => expect(compareWithBuild(a, b)).toBe(order))
})

it('compareVersions ignores build tags', () => expect(compareVersions('v1.36.0+2', 'v1.36.0+1')).toBe(0))

it('isUpgrade is true for build tags that have no order, and false for an equal or lower version', () => {
  expect(isUpgrade('v1.36.0+abc', 'v1.36.0+xyz')).toBe(true)
  expect(isUpgrade('v1.36.0', 'v1.36.0')).toBe(false)
  expect(isUpgrade('v1.36.1', 'v1.36.0')).toBe(false)
})

// The reasons are those of ParseTolerant of github.com/blang/semver/v4.
test.each([
  ['', 'strconv.ParseUint: parsing "": invalid syntax'],
  ['v', 'strconv.ParseUint: parsing "": invalid syntax'],
  ['latest', 'Invalid character(s) found in major number "0latest"'],
  ['x.1.0', 'Invalid character(s) found in major number "x"'],
  ['1.2.3.4', 'Invalid character(s) found in patch number "3.4"'],
  ['1.x', 'Invalid character(s) found in minor number "x"'],
  ['1.18446744073709551616.0', 'strconv.ParseUint: parsing "18446744073709551616": value out of range'],
  ['v1.36-rc.1', 'Invalid character(s) found in minor number "36-rc"'],
  ['v1.36-rc', 'Short version cannot contain PreRelease/Build meta data'],
  ['v1.36.0-', 'Prerelease is empty'],
  ['v1.36.0-rc.01', 'Numeric PreRelease version must not contain leading zeroes "01"'],
  ['v1.36.0-18446744073709551616', 'strconv.ParseUint: parsing "18446744073709551616": value out of range'],
  ['v1.36.0-rc_1', 'Invalid character(s) found in prerelease "rc_1"'],
  ['v1.36.0+', 'Build meta data is empty'],
  ['v1.36.0+a_b', 'Invalid character(s) found in build meta data "a_b"'],
])('%j is not a version: %s', (text, reason) =>
  expect(() => parseVersion(text)).toThrow(new TypeError(`failed to parse version ${text}: ${reason}`)),
)

test.each([
  ['v1.36.0', true],
  ['v1.36.0-rc.1+build.7', true],
  ['1.36.0', false],
  ['v1.36', false],
  ['vv1.36.0', false],
  ['v1.036.0', false],
  ['v1.36.0 ', false],
])('isKubernetesVersion of %j is %s', (text, valid) => expect(isKubernetesVersion(text)).toBe(valid))

test.each([
  ['1.36.0', 'v1.36.0'],
  ['v1.36.0', 'v1.36.0'],
  ['', ''],
])('withVersionPrefix of %j is %j', (text, prefixed) => expect(withVersionPrefix(text)).toBe(prefixed))

it('versionText formats a version with the prefix v and its build tags', () =>
  expect(versionText(parseVersion('1.36.0+abc.1'))).toBe('v1.36.0+abc.1'))
