import type { ToolModule } from './components.ts'

/**
 * Returns the go.mod of a tool module. `upstream` is the text of the go.mod of the module that `staging.of` names. Modules that this text
 * requires in version v0.0.0 are replaced by their published release `staging.version`. Without `staging`, `upstream` is not used.
 */
export function goMod(
  { name, path = `capstan.dev/tools/${name}`, go, requires, staging, replaces = {} }: ToolModule,
  upstream = '',
): string {
  const stagingModules = staging ? [...upstream.matchAll(/^\s*(?:require\s+)?(\S+) v0\.0\.0$/gm)].map(([, path]) => path) : []
  return [
    `module ${path}`,
    `go ${go}.0`,
    ...requires.map(({ path, version }) => `require ${path} ${version}`),
    ...Object.entries(replaces).map(([path, version]) => `replace ${path} => ${path} ${version}`),
    ...stagingModules.map((path) => `replace ${path} => ${path} ${staging?.version}`),
    '',
  ].join('\n')
}
