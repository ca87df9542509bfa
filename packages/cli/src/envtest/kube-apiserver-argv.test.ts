import { expect, test } from 'vitest'
import { missingFlags, upstreamArgv } from './kube-apiserver-argv.ts'

test.each<{ name: string; given: string[]; told: string[] }>([
  { name: 'flags are left as they are', given: ['--secure-port=1', '--v', '4'], told: ['--secure-port=1', '--v', '4'] },
  { name: 'underscores are dashes', given: ['--bind_address=a_b'], told: ['--bind-address=a_b'] },
  {
    name: 'a list that is given twice grows',
    given: ['--disable-admission-plugins=ServiceAccount', '--secure-port=1', '--disable-admission-plugins', 'NamespaceLifecycle'],
    told: ['--disable-admission-plugins=ServiceAccount,NamespaceLifecycle', '--secure-port=1'],
  },
])('$name', ({ given, told }) => {
  expect(upstreamArgv(given)).toEqual(told)
})

test('names missing flags that upstream requires', () => {
  expect(missingFlags(['--etcd-servers=x', '--service-account-key-file', 'k', '--service-account-issuer=i'])).toEqual([
    '--service-account-signing-key-file and --service-account-issuer are required flags',
  ])
})
