import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { formatKubeconfig, kubeconfigFor } from '@capstan/kube/node'
import { afterAll, expect, test } from 'vitest'
import { managementAccess, ownPodOf } from './management-access.ts'

const folder = mkdtempSync(join(tmpdir(), 'capstan-access-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
/** Writes a kubeconfig to `name`; the first part of this path names the context and the server. Returns the absolute path. */
const file = (name: string): string => {
  const path = join(folder, name)
  mkdirSync(join(path, '..'), { recursive: true })
  writeFileSync(path, formatKubeconfig(kubeconfigFor(name.split('/')[0]!, { server: `https://${name.split('/')[0]}:6443` })))
  return path
}
const pod = { KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '443' }
const [flag, env] = [file('flag'), file('env')]
file('home/.kube/config')
const home = join(folder, 'home')

test.each([
  ['the flag overrides $KUBECONFIG and the pod', { kubeconfig: flag }, { KUBECONFIG: env, ...pod }, 'https://flag:6443'],
  ['$KUBECONFIG overrides the pod', {}, { KUBECONFIG: env, ...pod }, 'https://env:6443'],
  [
    'the first current-context of several files in $KUBECONFIG is used, absent files are ignored',
    {},
    { KUBECONFIG: `${folder}/absent:${env}:${flag}` },
    'https://env:6443',
  ],
  ['a context may be in a later file of $KUBECONFIG', { context: 'flag' }, { KUBECONFIG: `${env}:${flag}` }, 'https://flag:6443'],
  ['~/.kube/config is used without flag, $KUBECONFIG and pod', {}, {}, 'https://home:6443'],
  ['an empty $KUBECONFIG is ignored', {}, { KUBECONFIG: '' }, 'https://home:6443'],
])('%s', async (_, flags, environment, server) => {
  expect(await managementAccess(flags, environment, home)).toMatchObject({ access: { server }, isInCluster: false })
})

test.each([
  ['a missing file of the service account is named', {}, pod, /serviceaccount\/token/],
  ['a context is rejected in a pod', { context: 'x' }, pod, /--context needs a kubeconfig/],
  ['an unknown context is rejected by name', { kubeconfig: flag, context: 'x' }, {}, /context "x" does not exist/],
  ['missing files of $KUBECONFIG are named', {}, { KUBECONFIG: 'a:b' }, /kubeconfig a, b: there is no such file/],
])('%s', async (_, flags, environment, expectedError) => {
  await expect(managementAccess(flags, environment, home)).rejects.toThrow(expectedError)
})

test('rejects a command without a configured management cluster', async () => {
  await expect(managementAccess({}, {}, folder)).rejects.toThrow('no management cluster is named')
})

test('ownPodOf finds the Pod of the process in the variables that the manifests set, unless one of them is empty', () => {
  const variables = { POD_NAMESPACE: 'capi-system', POD_NAME: 'manager', POD_UID: 'u' }
  const access = { server: 'https://10.0.0.1:443', ca: 'PEM', tokenFile: '/token' }
  expect(ownPodOf(variables, access)).toEqual({
    ownPod: { namespace: 'capi-system', name: 'manager', uid: 'u', server: 'https://10.0.0.1:443', ca: 'PEM' },
  })
  expect(ownPodOf({ ...variables, POD_UID: '' }, access)).toEqual({})
})
