/** The kinds of `batch/v1`. */
import { cronjobs } from './batch/cron-job.ts'
import { jobs } from './batch/job.ts'
import type { KindTable } from './builtin-kind.ts'

export const batch: KindTable = { cronjobs, jobs }
