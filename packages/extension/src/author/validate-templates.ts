/** Computes responses to ValidateTopology from the problems of templates. */
import type { ValidateTopology } from '@capstan/api'
import type { FieldError } from '@capstan/kube'
import { messageOf } from '@capstan/kube'
import { type AnswerOf, fail, proceedNow } from './answer.ts'
import type { HandlerCall } from './define-extension.ts'
import { type TemplateRule, type WalkOptions, walkTemplates } from './template-walk.ts'

/** Problems of a template: text, or field errors such as `invalid('spec.x', value, 'must be …')`. */
export type TemplateProblems = readonly (string | FieldError)[] | undefined | void

/**
 * Returns a handler of ValidateTopology: each rule returns the problems of the templates that it selects. The response has all problems in
 * one message. Their order does not depend on the order of the templates in the request. If a template does not match the `type` of its
 * rule or, with `failForUnknownTypes`, no rule selects its type, this is the only problem, and no rule is called.
 *
 * @example
 * on(ValidateTopology, { name: 'validate-topology' }, validateTemplates([
 *   template({ kind: 'LocalMachineTemplate' }, ({ variables }) =>
 *     variables.string('region').startsWith('eu') ? [] : ['machines run in the EU only']),
 * ]))
 */
export const validateTemplates =
  (rules: readonly TemplateRule<TemplateProblems | Promise<TemplateProblems>>[], options: WalkOptions = {}) =>
  async (call: HandlerCall<typeof ValidateTopology>): Promise<AnswerOf<typeof ValidateTopology>> => {
    const problems = new Set<string>()
    try {
      for (const { item, name, rules: selected, call: ruleCall } of walkTemplates(call, rules, options)) {
        for (const { act } of selected) {
          const problemsOfRule = await problemsOf(() => act({ ...ruleCall, template: item.object } as never))
          for (const problem of problemsOfRule) problems.add(`${name}: ${problem}`)
        }
        call.signal.throwIfAborted()
      }
    } catch (err) {
      if (call.signal.aborted) throw err
      return fail(messageOf(err))
    }
    return problems.size === 0 ? proceedNow() : fail([...problems].join('; '))
  }

/** Returns the problems that a rule reports. If it throws an error, returns the error as the only problem. */
async function problemsOf(act: () => TemplateProblems | Promise<TemplateProblems>): Promise<string[]> {
  try {
    const problems = (await act()) ?? []
    return problems.map((problem) => (typeof problem === 'string' ? problem : `${problem.field}: ${problem.text}`))
  } catch (err) {
    return [messageOf(err)]
  }
}
