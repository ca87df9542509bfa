/** For tests: makes outlines of OpenAPI documents of hooks, so that documents with different components can be compared. */
import type { JSONSchema } from '@capstan/kube'

/** The members of an OpenAPI document of hooks that `outlineOf` reads. */
export interface HooksDocument {
  readonly paths: { readonly [path: string]: object }
  readonly components: { readonly schemas: { readonly [name: string]: JSONSchema } }
}

interface Operation {
  readonly tags?: readonly string[]
  readonly parameters?: readonly {
    readonly name: string
    readonly in: string
    readonly required: boolean
    readonly schema: JSONSchema
  }[]
  readonly requestBody: Body
  readonly responses: { readonly [code: string]: Body }
}
interface Body {
  readonly content: { readonly [type: string]: { readonly schema: { readonly $ref: string } } }
}

/**
 * Returns a text for each operation, message and field. The key of an operation is its path. The key of a message also has `request` or the
 * code of the response, and the key of a field also the path of the field in the message. The text of a field has its type and format, and
 * `required` for a required field. For a type inside itself, the text also has the name of the type and `again`, and the fields are left
 * out.
 */
export function outlineOf({ paths, components: { schemas } }: HooksDocument): Map<string, string> {
  const lines = new Map<string, string>()
  const resolved = (schema: JSONSchema): { schema: JSONSchema; name?: string } => {
    const reference = schema.$ref ?? schema.allOf?.[0]?.$ref
    if (reference === undefined) return { schema }
    const name = reference.slice('#/components/schemas/'.length)
    return { schema: schemas[name]!, name }
  }
  const walk = (unresolved: JSONSchema, path: string, isRequired: boolean, outerNames: readonly string[]) => {
    const { schema, name } = resolved(unresolved)
    const { type = 'any', format, properties = {}, required = [], items, additionalProperties } = schema
    const short = name?.slice(name.lastIndexOf('.') + 1)
    const isRecursive = short !== undefined && outerNames.includes(short)
    lines.set(
      path,
      [type, format, isRecursive ? `${short} again` : undefined, isRequired ? 'required' : undefined].filter(Boolean).join(' '),
    )
    if (isRecursive) return
    const names = short === undefined ? outerNames : [...outerNames, short]
    for (const [field, property] of Object.entries(properties))
      walk(property, `${path}.${field}`, required.includes(field), names)
    if (items) walk(items, `${path}[]`, false, names)
    if (typeof additionalProperties === 'object') walk(additionalProperties, `${path}{}`, false, names)
  }
  for (const [path, item] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(item) as [string, Operation][]) {
      const { tags = [], parameters = [], requestBody, responses } = operation
      const parameterTexts = parameters.map(
        ({ name, in: where, required, schema }) => `{${name}} ${where} ${required} ${schema.type}`,
      )
      lines.set(path, [method, ...tags, ...parameterTexts].join(' '))
      for (const [message, body] of Object.entries({ request: requestBody, ...responses })) {
        for (const [type, { schema }] of Object.entries(body.content)) {
          lines.set(`${path} ${message}`, `${type} ${schema.$ref}`)
          walk(schema as JSONSchema, `${path} ${message} `, false, [])
        }
      }
    }
  }
  return lines
}
