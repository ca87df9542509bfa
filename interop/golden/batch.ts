/**
 * Scenarios of Jobs and CronJobs: requests to which `interop/recordings/record-golden.ts` records the responses of a real kube-apiserver.
 */
import { columnsOf, get, merged, mergePatch, post, put, remove, type Scenario, strategicPatch, variants } from './step.ts'

const template = { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'busybox' }] } }
const jobs = '/apis/batch/v1/namespaces/default/jobs'
const job = { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'min' }, spec: { template } }
const cronJobs = '/apis/batch/v1/namespaces/default/cronjobs'
const cronJob = {
  apiVersion: 'batch/v1',
  kind: 'CronJob',
  metadata: { name: 'min' },
  spec: { schedule: '*/5 * * * *', jobTemplate: { spec: { template } } },
}
const long = 'x'.repeat(64)

export const scenarios: readonly Scenario[] = [
  {
    name: 'jobs',
    steps: [
      { ...post(jobs, job), save: { uid: 'metadata.uid' } },
      post(jobs, {
        ...job,
        metadata: { name: 'max', labels: { a: 'b' } },
        spec: {
          parallelism: 2,
          completions: 4,
          backoffLimit: 1,
          activeDeadlineSeconds: 60,
          ttlSecondsAfterFinished: 10,
          completionMode: 'Indexed',
          suspend: true,
          podReplacementPolicy: 'Failed',
          podFailurePolicy: { rules: [{ action: 'FailJob', onExitCodes: { operator: 'In', values: [1, 2] } }] },
          template: merged(template, { metadata: { labels: { c: 'd' } } }),
        },
      }),
      post(jobs, {
        ...job,
        metadata: { name: 'manual' },
        spec: {
          manualSelector: true,
          selector: { matchLabels: { a: 'b' } },
          template: { ...template, metadata: { labels: { a: 'b' } } },
        },
      }),
      post(jobs, {
        ...job,
        metadata: { name: 'onfailure' },
        spec: { template: merged(template, { spec: { restartPolicy: 'OnFailure' } }) },
      }),
      post(jobs, { ...job, metadata: { generateName: 'made-' }, spec: { template, parallelism: 0, completions: 0 } }),
      ...variants(jobs, job, [
        { spec: null },
        { spec: { template: { spec: { restartPolicy: null } } } },
        { spec: { template: { spec: { restartPolicy: 'Sometimes' } } } },
        { spec: { template: { spec: { containers: null } } } },
        { spec: { parallelism: -1, completions: -1, backoffLimit: -1, activeDeadlineSeconds: -1, ttlSecondsAfterFinished: -1 } },
        { spec: { completionMode: 'Sometimes' } },
        { spec: { completionMode: 'Indexed' } },
        { spec: { completionMode: 'Indexed', completions: 5, parallelism: 200000 } },
        { spec: { selector: { matchLabels: { a: 'b' } } } },
        { spec: { manualSelector: true } },
        { spec: { manualSelector: true, selector: { matchLabels: { a: 'b' } } } },
        { spec: { podReplacementPolicy: 'Sometimes' } },
        { spec: { backoffLimitPerIndex: 1 } },
        { spec: { maxFailedIndexes: 1 } },
        { spec: { managedBy: 'not valid' } },
        { spec: { podFailurePolicy: { rules: [{ action: 'Sometimes' }] } } },
        { spec: { podFailurePolicy: { rules: [{ action: 'FailJob', onExitCodes: { operator: 'In', values: [] } }] } } },
        { spec: { template: { spec: { restartPolicy: 'OnFailure' } }, podFailurePolicy: { rules: [] } } },
        { metadata: { name: 'dotted.name' } },
        { metadata: { name: long } },
        { spec: { successPolicy: { rules: [{ succeededCount: 1 }] } } },
      ]),
      mergePatch(`${jobs}/min`, { spec: { template: { spec: { containers: [{ name: 'c', image: 'other' }] } } } }),
      mergePatch(`${jobs}/min`, { spec: { completions: 5 } }),
      mergePatch(`${jobs}/min`, { spec: { parallelism: 5, backoffLimit: 3 } }),
      mergePatch(`${jobs}/min`, { spec: { suspend: true } }),
      mergePatch(`${jobs}/min`, { spec: { selector: { matchLabels: { a: 'b' } } } }),
      mergePatch(`${jobs}/min`, { spec: { completionMode: 'Indexed' } }),
      mergePatch(`${jobs}/max`, { spec: { podFailurePolicy: null } }),
      mergePatch(`${jobs}/max`, { spec: { template: { spec: { nodeSelector: { a: 'b' } } } } }),
      mergePatch(`${jobs}/max`, { spec: { completions: 5, parallelism: 5 } }),
      mergePatch(`${jobs}/min/status`, { status: { active: -1, succeeded: -1, failed: -1, ready: -1, terminating: -1 } }),
      mergePatch(`${jobs}/min/status`, { status: { active: 1, ready: 1, startTime: '2026-01-01T00:00:00Z' } }),
      mergePatch(`${jobs}/min/status`, { status: { active: 1, ready: 3 } }),
      mergePatch(`${jobs}/min/status`, {
        status: { conditions: [{ type: 'Complete', status: 'True' }] },
      }),
      mergePatch(`${jobs}/min/status`, {
        status: {
          active: 0,
          ready: 0,
          succeeded: 1,
          completionTime: '2026-01-01T01:01:01Z',
          conditions: [
            { type: 'SuccessCriteriaMet', status: 'True', reason: 'CompletionsReached' },
            { type: 'Complete', status: 'True', reason: 'CompletionsReached' },
          ],
        },
      }),
      columnsOf(jobs),
      get(`${jobs}?fieldSelector=status.successful%3D1`),
      get(`${jobs}?fieldSelector=status.failed%3D1`),
      put(`${jobs}/onfailure`, { ...job, metadata: { name: 'onfailure' } }),
      remove(`${jobs}/min`),
      remove(`${jobs}/max`, { propagationPolicy: 'Background' }),
    ],
  },
  {
    name: 'cron jobs',
    steps: [
      post(cronJobs, cronJob),
      post(cronJobs, {
        ...cronJob,
        metadata: { name: 'max' },
        spec: {
          schedule: '@hourly',
          timeZone: 'Europe/Berlin',
          startingDeadlineSeconds: 10,
          concurrencyPolicy: 'Forbid',
          suspend: true,
          successfulJobsHistoryLimit: 0,
          failedJobsHistoryLimit: 5,
          jobTemplate: { metadata: { labels: { a: 'b' } }, spec: { completions: 2, template } },
        },
      }),
      ...variants(cronJobs, cronJob, [
        { spec: null },
        { spec: { schedule: null } },
        { spec: { schedule: 'every day' } },
        { spec: { schedule: '61 * * * *' } },
        { spec: { schedule: 'TZ=UTC 1 * * * *' } },
        { spec: { schedule: '@sometimes' } },
        { spec: { schedule: '@every 5m' } },
        { spec: { schedule: '1-5/2,7 0-3 ? JAN-MAR MON,7' } },
        { spec: { timeZone: 'Nowhere/City' } },
        { spec: { timeZone: '' } },
        { spec: { timeZone: 'Local' } },
        { spec: { concurrencyPolicy: 'Sometimes' } },
        { spec: { startingDeadlineSeconds: -1, successfulJobsHistoryLimit: -1, failedJobsHistoryLimit: -1 } },
        { spec: { jobTemplate: { spec: { template: { spec: { restartPolicy: 'Always' } } } } } },
        { spec: { jobTemplate: { spec: { manualSelector: true } } } },
        { spec: { jobTemplate: { spec: { selector: { matchLabels: { a: 'b' } } } } } },
        { metadata: { name: 'x'.repeat(53) } },
      ]),
      mergePatch(`${cronJobs}/min`, { spec: { suspend: true } }),
      strategicPatch(`${cronJobs}/min`, {
        spec: { jobTemplate: { spec: { template: { spec: { containers: [{ name: 'c', image: 'other' }] } } } } },
      }),
      mergePatch(`${cronJobs}/min`, { spec: { schedule: '1 2' } }),
      mergePatch(`${cronJobs}/min/status`, {
        status: { active: [{ kind: 'Job', name: 'x', namespace: 'default' }], lastScheduleTime: '2020-01-01T00:00:00Z' },
      }),
      columnsOf(cronJobs),
      remove(`${cronJobs}/min`),
    ],
  },
]
