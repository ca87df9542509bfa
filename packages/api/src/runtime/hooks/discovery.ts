import { s } from '@capstan/kube'
import { commonResponse, defineHook } from '../hook.ts'

/** The hook that returns the handlers of an extension server. */
export const Discovery = defineHook({
  name: 'Discovery',
  tag: 'Discovery',
  blocking: false,
  singleton: true,
  doc: 'Called when an ExtensionConfig is reconciled. The response lists the handlers of the server.',
  request: {},
  response: {
    ...commonResponse,
    handlers: s
      .list(
        s.object({
          name: s.string().doc('Unique within the server: a DNS label.'),
          requestHook: s.object({
            apiVersion: s.string().doc('Group and version of the hook.'),
            hook: s.string().doc('Name of the hook, such as BeforeClusterCreate.'),
          }),
          timeoutSeconds: s.int32().optional().doc('Timeout of a call: 1 to 30 seconds, 10 when absent or 0.'),
          failurePolicy: s
            .enum('Ignore', 'Fail')
            .optional()
            .doc('With Ignore, a call without a valid response counts as a success without effect. Default: Fail.'),
        }),
      )
      .optional(),
  },
})
