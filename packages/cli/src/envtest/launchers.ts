/** Writes scripts named etcd and kube-apiserver, which test environments start and which run Capstan. */
import { chmod, lstat, readFile, symlink, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { makeFolder } from '@capstan/kube/node'

const launcherNames = ['etcd', 'kube-apiserver'] as const

const launcherMark = '# Written by `capstan envtest`'

export interface LauncherProgram {
  /** Path of the Node executable that the launcher starts. */
  readonly node: string
  /** Path of `bin/envtest.js`, which Node runs. */
  readonly entry: string
  /** The program's help text. */
  readonly help: string
}

/**
 * Returns the script that replaces the program `name`. Test environments read the help before each start to see the
 * supported flags, so the script contains the help text, which it prints without starting Node. `exec` replaces the shell, so
 * that the server receives the signals.
 */
const launcher = (name: string, { node, entry, help }: LauncherProgram): string =>
  `#!/bin/sh
${launcherMark}: Capstan in place of ${name}.
if [ "$*" = --help ]; then
  cat <<'HELP'
${help}
HELP
  exit
fi
exec ${quoted(node)} ${quoted(entry)} ${name} "$@"
`

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

export interface LauncherOptions {
  readonly folder: string
  readonly node: string
  readonly entry: string
  readonly help: { readonly [name in (typeof launcherNames)[number]]: string }
  /** $PATH, which is searched for kubectl, because some suites call it. */
  readonly path: string | undefined
}

/**
 * Writes the launchers, and a link to kubectl if it is on the PATH and the folder has no kubectl. @throws Error instead of overwriting
 * another etcd or kube-apiserver
 */
export async function writeLaunchers(options: LauncherOptions): Promise<{ kubectl: string | undefined }> {
  const { folder, node, entry, help, path } = options
  await makeFolder(folder)
  for (const name of launcherNames) {
    const file = join(folder, name)
    if (!(await isAbsentOrOwn(file)))
      throw new Error(`Cannot write ${file}: another program of that name is there; give another folder`)
  }
  for (const name of launcherNames) {
    const file = join(folder, name)
    await writeFile(file, launcher(name, { node, entry, help: help[name] }))
    await chmod(file, 0o755)
  }
  const kubectl = await findProgram('kubectl', path)
  const link = join(folder, 'kubectl')
  if (kubectl !== undefined && !(await exists(link))) await symlink(kubectl, link)
  return { kubectl }
}

async function isAbsentOrOwn(file: string): Promise<boolean> {
  if (!(await exists(file))) return true
  return (await readFile(file, 'latin1')).includes(launcherMark)
}

const exists = (file: string): Promise<boolean> =>
  lstat(file).then(
    () => true,
    () => false,
  )

async function findProgram(name: string, path = ''): Promise<string | undefined> {
  for (const folder of path.split(delimiter).filter(Boolean)) {
    const file = join(folder, name)
    const isExecutable = await access(file, constants.X_OK).then(
      () => true,
      () => false,
    )
    if (isExecutable) return file
  }
  return undefined
}
