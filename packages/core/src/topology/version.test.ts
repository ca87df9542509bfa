import { describe, expect, test } from 'vitest'
import { compareVersions, compareWithBuild, parseVersion, versionText } from './version.ts'

describe('order of versions with build metadata', () => {
  test.each([
    ['v1.33.1', 'v1.33.1', 0],
    ['v1.33.1', 'v1.34.0', -1],
    ['v1.34.0', 'v1.34.0-rc.1', 1],
    ['v1.33.1+build.2', 'v1.33.1+build.10', -1],
    ['v1.33.1+a', 'v1.33.1+b', -1],
    ['v1.33.1+1', 'v1.33.1+a', 'differ'],
    ['v1.33.1+1.2', 'v1.33.1+1', 'differ'],
    ['v1.33.1', 'v1.33.1+vendor', 'differ'],
  ] as const)('%s against %s is %s', (a, b, order) => {
    expect(compareWithBuild(a, b)).toBe(order)
  })

  test('build metadata does not count in plain order', () => {
    expect(compareVersions('v1.33.1+a', 'v1.33.1+b')).toBe(0)
  })

  test('a text that is no version is named in the error', () => {
    expect(() => parseVersion('v1.x')).toThrow('failed to parse version v1.x')
  })

  test('versions print with v and build metadata', () => {
    expect(versionText(parseVersion('1.33.1+vendor.2'))).toBe('v1.33.1+vendor.2')
  })
})
