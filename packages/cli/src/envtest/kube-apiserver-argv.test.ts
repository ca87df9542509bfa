import { expect, test } from 'vitest'
import { missingFlags, translateArgv } from './kube-apiserver-argv.ts'

test.each<{ name: string; given: string[]; expected: string[] }>([
  { name: 'flags with dashes are unchanged', given: ['--secure-port=1', '--v', '4'], expected: ['--secure-port=1', '--v', '4'] },
  {
    name: 'underscores in flag names become dashes, values are unchanged',
    given: ['--bind_address=a_b'],
    expected: ['--bind-address=a_b'],
  },
  {
    name: 'values of a repeated list flag are joined',
    given: ['--disable-admission-plugins=ServiceAccount', '--secure-port=1', '--disable-admission-plugins', 'NamespaceLifecycle'],
    expected: ['--disable-admission-plugins=ServiceAccount,NamespaceLifecycle', '--secure-port=1'],
  },
])('$name', ({ given, expected }) => {
  expect(translateArgv(given)).toEqual(expected)
})

test('reports the missing required flags', () => {
  expect(missingFlags(['--etcd-servers=x', '--service-account-key-file', 'k', '--service-account-issuer=i'])).toEqual([
    '--service-account-signing-key-file and --service-account-issuer are required flags',
  ])
})
