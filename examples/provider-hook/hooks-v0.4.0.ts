/** The hooks of this provider in its next release, v0.4.0, which removes version v1beta1 of BeforeHostProvision. */
import type { Hook } from '@capstan/api'
import { BeforeHostProvision } from './hooks.ts'

export const hostHooks: readonly Hook[] = [BeforeHostProvision]
