import { StatusError } from '@capstan/kube'
import { expect, test } from 'vitest'
import { storyLog } from './story-log.ts'

test('prints a repeated error of an object once, and an error without an object as one of capstan; omits reconciler errors', () => {
  const lines: string[] = []
  const log = storyLog(({ subject, text }) => void lines.push(`${subject}: ${text}`))
  const clusterLog = log.child({ controller: 'topology/cluster' }).child({ Cluster: 'default/demo', reconcileID: '1' })
  const logRejection = () =>
    clusterLog.error('Status rejected by the API server', { err: new StatusError('Invalid', 'too long') })
  logRejection()
  logRejection()
  clusterLog.error('Reconciler error', { err: new Error('no') })
  log.error('The data folder takes no writes')
  expect(lines).toEqual([
    'Cluster default/demo: Status rejected by the API server: too long',
    'capstan: The data folder takes no writes',
  ])
})
