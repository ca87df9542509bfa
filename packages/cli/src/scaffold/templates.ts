/** Reads the template files in `templates/`, from which new projects are made, and replaces placeholders such as `{{x}}`. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Text of each template file, by its path in the folder of the templates. */
export type Templates = ReadonlyMap<string, string>

export const extensionTemplates = (): Templates => templatesIn('extension')

export const providerTemplates = (): Templates => templatesIn('provider')

function templatesIn(name: string): Templates {
  const folder = fileURLToPath(new URL(`../../templates/${name}`, import.meta.url))
  // Files with a dot in the name in any folder, and all files of the top folder, such as Dockerfile.
  const files = globSync('**/*.*', { cwd: folder }).concat(globSync('*', { cwd: folder, exclude: ['hooks', 'manifests'] }))
  return new Map([...new Set(files)].sort().map((file) => [file, readFileSync(join(folder, file), 'utf8')]))
}

/** Replaces the placeholders of a template. @throws Error for a placeholder without a value */
export const fillPlaceholders = (text: string, values: { readonly [name: string]: string }): string =>
  text.replace(/\{\{([^}]+)\}\}/g, (_, name: string) => {
    const value = Object.hasOwn(values, name) ? values[name] : undefined
    if (value === undefined) throw new Error(`Cannot fill in {{${name}}}: values exist for ${Object.keys(values).join(', ')}`)
    return value
  })
