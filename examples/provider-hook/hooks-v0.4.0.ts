/** The hooks of the next release, v0.4.0, which removes v1beta1. */
import type { Hook } from '@capstan/api'
import { BeforeHostProvision } from './hooks.ts'

export const hostHooks: readonly Hook[] = [BeforeHostProvision]
