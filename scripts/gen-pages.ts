/** Generates the reference pages of hooks and conditions from their declarations. `hooks-in-order.ts` has the other sections of the page of hooks. */
import * as api from '@capstan/api'
import type { ConditionType, JSONSchema } from '@capstan/kube'
import { hooksInOrder } from './hooks-in-order.ts'

/** First line of the pages that are generated from declarations. */
export const warning = '<!-- Made by npm run gen. Change the declarations instead. -->'

/** Returns the page of all hooks with their requests and responses. */
export function hooksPage(): string {
  const hooks = (Object.values(api) as unknown[]).filter(isHook)
  const sections = hooks
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map((hook) =>
      [
        `## ${hook.name}`,
        '',
        hook.doc,
        '',
        `\`POST …/${hook.group}/${hook.version}/${hook.name.toLowerCase()}${hook.singleton ? '' : '/<handler>'}\`. ${hook.blocking ? 'Blocking: `retryAfterSeconds` above 0 blocks the next step.' : 'Not blocking.'}`,
        '',
        `Request \`${hook.name}Request\``,
        '',
        ...fieldsOf(hook.request.json),
        '',
        `Response \`${hook.name}Response\``,
        '',
        ...fieldsOf(hook.response.json),
      ].join('\n'),
    )
  return [
    warning,
    '# Hooks',
    '',
    'When each hook is called, what it blocks, and the fields of its request and response.',
    '',
    ...hooksInOrder(),
    ...sections.flatMap((section) => [section, '']),
  ].join('\n')
}

/** Returns the page of the conditions of the core provider's kinds, with their reasons. */
export function conditionsPage(): string {
  const tables = (Object.entries(api) as [string, unknown][]).filter(([name]) => name.endsWith('Conditions')) as [
    string,
    Record<string, ConditionType>,
  ][]
  const sections = tables
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, types]) =>
      [
        `## ${name.slice(0, -'Conditions'.length)}`,
        '',
        '| condition | reasons |',
        '| --- | --- |',
        ...Object.values(types).map(
          ({ type, reasons }) => `| \`${type}\` | ${reasons.map((reason) => `\`${reason}\``).join(', ')} |`,
        ),
      ].join('\n'),
    )
  return [
    warning,
    '# Conditions',
    '',
    'The conditions in `status.conditions` of the kinds of the core provider, with their reasons. Kinds without conditions are not listed. Types and reasons are upstream’s, except the condition `DeprecatedHooks`, which upstream does not have.',
    '',
    ...sections.flatMap((section) => [section, '']),
  ].join('\n')
}

const isHook = (value: unknown): value is api.Hook =>
  typeof value === 'object' && value !== null && 'request' in value && 'blocking' in value

function fieldsOf(schema: JSONSchema): string[] {
  const required = new Set(schema.required)
  const rows = Object.entries(schema.properties ?? {}).map(([name, field]) => {
    const type = field.enum ? field.enum.map((value) => JSON.stringify(value)).join(' or ') : (field.type ?? 'any')
    return `| \`${name}\` | ${type} | ${required.has(name) ? 'yes' : 'no'} | ${field.description ?? ''} |`
  })
  return ['| field | type | required | |', '| --- | --- | --- | --- |', ...rows]
}
