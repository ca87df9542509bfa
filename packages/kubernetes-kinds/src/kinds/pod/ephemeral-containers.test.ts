import { Pod } from '@capstan/kube'
import { expect, test } from 'vitest'
import { at, rejection, testServer } from '../../test-server.ts'

/** Upstream: validateContainerCommon and validateContainerOnlyForPod, v1.36. */
test.each([
  ['busybox:1.36', 'accepted'],
  [
    ' busybox',
    '422 Invalid: Pod "p" is invalid: spec.ephemeralContainers[0].image: Invalid value: " busybox": must not have leading or trailing whitespace',
  ],
  ['', '422 Invalid: Pod "p" is invalid: spec.ephemeralContainers[0].image: Required value'],
])('an ephemeral container with the image %j: %s', async (image, expected) => {
  const { client } = await testServer()
  await client.create(Pod, { metadata: at('p'), spec: { containers: [{ name: 'c', image: 'i' }] } })
  const body = { spec: { ephemeralContainers: [{ name: 'debug', image }] } }
  // The client's type lists only the subresources that every kind can have.
  const subresource = 'ephemeralcontainers' as 'status'
  const request = client.patch(Pod, at('p'), { type: 'strategic', body }, { subresource })
  expect(await rejection(request)).toBe(expected)
})
