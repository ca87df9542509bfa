import { Argument, Command } from 'commander'
import type { Io } from '../io.ts'

/** Completions of one command. */
export interface CompletionNode {
  /** The words of the command, without the program: `['hooks', 'call']`. */
  readonly path: readonly string[]
  readonly subcommands: readonly { readonly name: string; readonly description: string }[]
  readonly flags: readonly { readonly long: string; readonly description: string; readonly takesValue: boolean }[]
}

const shells = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof shells)[number]

/** `capstan completion SHELL`: prints a script that completes commands and flags, as kubectl and clusterctl do. */
export const completionCommand = (io: Io): Command =>
  new Command('completion')
    .description('Print a script that completes commands and flags in your shell')
    .addArgument(new Argument('<shell>', 'the shell').choices(shells))
    .addHelpText(
      'after',
      '\nbash:  source <(capstan completion bash)\nzsh:   source <(capstan completion zsh)\nfish:  capstan completion fish | source',
    )
    .action(function (this: Command, shell: Shell) {
      io.out(completionScript(shell, completionTree(this.parent!)))
    })

/** Returns the completions of `command` and of all commands below it, parents first. Omits hidden commands and the command `help`. */
export function completionTree(command: Command, path: readonly string[] = []): CompletionNode[] {
  const help = command.createHelp()
  const subcommands = help.visibleCommands(command).filter((sub) => sub.name() !== 'help')
  const flags = help
    .visibleOptions(command)
    .flatMap(({ long, description, required, optional }) =>
      long ? [{ long, description, takesValue: required || optional }] : [],
    )
  const node = { path, flags, subcommands: subcommands.map((sub) => ({ name: sub.name(), description: sub.description() })) }
  return [node, ...subcommands.flatMap((sub) => completionTree(sub, [...path, sub.name()]))]
}

/** Returns the script for a shell. zsh runs the bash script, with bashcompinit. */
export function completionScript(shell: Shell, nodes: readonly CompletionNode[]): string {
  if (shell === 'fish') return fishScript(nodes)
  const script = bashScript(nodes)
  return shell === 'bash' ? script : `autoload -U +X bashcompinit && bashcompinit\n${script}`
}

function bashScript(nodes: readonly CompletionNode[]): string {
  const cases = nodes.map(({ path, subcommands, flags }) => {
    const words = [...subcommands.map(({ name }) => name), ...flags.map(({ long }) => long)]
    return `    '${path.join(' ')}') words='${words.join(' ')}' ;;`
  })
  const paths = nodes.filter(({ path }) => path.length > 0).map(({ path }) => `'${path.join(' ')}'`)
  return `_capstan() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" path='' words='' word next i
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="\${COMP_WORDS[i]}"
    next="\${path:+$path }$word"
    case "$next" in
      ${paths.join(' | ')}) path="$next" ;;
    esac
  done
  case "$path" in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _capstan capstan`
}

function fishScript(nodes: readonly CompletionNode[]): string {
  const lines = nodes.flatMap(({ path, subcommands, flags }) => {
    const condition =
      path.length === 0 ? '__fish_use_subcommand' : path.map((word) => `__fish_seen_subcommand_from ${word}`).join('; and ')
    return [
      ...subcommands.map(
        ({ name, description }) => `complete -c capstan -n '${condition}' -f -a ${name} -d ${quoted(description)}`,
      ),
      ...flags.map(
        ({ long, description, takesValue }) =>
          `complete -c capstan -n '${condition}' -l ${long.slice(2)}${takesValue ? ' -r' : ''} -d ${quoted(description)}`,
      ),
    ]
  })
  return lines.join('\n')
}

const quoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
