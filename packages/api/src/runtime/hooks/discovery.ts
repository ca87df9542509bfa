import { s } from '@capstan/kube'
import { commonResponse, defineHook } from '../hook.ts'

/** Asks an extension server which hooks it handles. */
export const Discovery = defineHook({
  name: 'Discovery',
  tag: 'Discovery',
  blocking: false,
  singleton: true,
  doc: 'Called when an ExtensionConfig is reconciled. The answer lists the handlers that the server has.',
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
          timeoutSeconds: s.int32().optional().doc('How long a call may take: 1 to 30, 10 when absent or 0.'),
          failurePolicy: s
            .enum('Ignore', 'Fail')
            .optional()
            .doc('Ignore: a call that does not get through counts as one that had nothing to say. Fail when absent.'),
        }),
      )
      .optional(),
  },
})
