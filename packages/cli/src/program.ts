/** The tree of commands: argv in, exit code out. */
import type { Command as CommandType } from 'commander'
import { messageOf } from '@capstan/kube'
import { Command, CommanderError } from 'commander'
import type { Io } from './io.ts'
import { ExitCodes, UsageError } from './io.ts'

type MakeCommand = (io: Io, finish: (code: number) => void) => CommandType

/** Each command with how to load it: starting one does not wait for the modules of the others. */
const commands: Readonly<Record<string, () => Promise<MakeCommand>>> = {
  up: async () => (await import('./commands/up.ts')).upCommand,
  new: async () => (await import('./commands/new.ts')).newCommand,
  dev: async () => (await import('./commands/dev.ts')).devCommand,
  apiserver: async () => (await import('./commands/apiserver.ts')).apiserverCommand,
  manager: async () => (await import('./commands/manager.ts')).managerCommand,
  kubeconfig: async () => (await import('./commands/kubeconfig.ts')).kubeconfigCommand,
  hooks: async () => (await import('./commands/hooks.ts')).hooksCommand,
  envtest: async () => (await import('./commands/envtest.ts')).envtestCommand,
  backup: async () => (await import('./commands/backup.ts')).backupCommand,
  restore: async () => (await import('./commands/backup.ts')).restoreCommand,
  version: async () => (await import('./commands/version.ts')).versionCommand,
}

/** Runs one command line to its end. Never throws: what went wrong is printed on standard error. */
export async function run(argv: readonly string[], io: Io): Promise<number> {
  let code: number = ExitCodes.done
  const program = new Command('capstan')
    .description('Kubernetes Cluster API you can run, break, plan and verify in one process; and run for real on any Kubernetes')
    .exitOverride()
    .configureOutput({ writeOut: (text) => io.out(text.trimEnd()), writeErr: (text) => io.err(text.trimEnd()) })
    .showHelpAfterError('Run capstan help for the commands and their flags.')
  const finish = (result: number) => {
    code = result
  }
  const asked = argv[0] !== undefined && Object.hasOwn(commands, argv[0]) ? [argv[0]] : Object.keys(commands)
  for (const name of asked) {
    const make = await commands[name]!()
    program.addCommand(inheriting(make(io, finish), program))
  }

  try {
    await program.parseAsync([...argv], { from: 'user' })
    return code
  } catch (err) {
    if (err instanceof CommanderError) return err.exitCode === 0 ? ExitCodes.done : ExitCodes.usage
    if (err instanceof UsageError) {
      io.err(`capstan: ${err.message}`)
      if (err.hint) io.err(err.hint)
      return ExitCodes.usage
    }
    io.err(`capstan: ${chain(err)}`)
    return ExitCodes.failed
  }
}

/** Subcommands take over exit and output handling only when they are created through their parent, and it has its own already. */
function inheriting(command: CommandType, parent: CommandType): CommandType {
  command.copyInheritedSettings(parent)
  for (const below of command.commands) inheriting(below, command)
  return command
}

/** An error with its causes, in one line. */
function chain(err: unknown): string {
  const parts: string[] = []
  for (let cause: unknown = err; cause !== undefined; cause = cause instanceof Error ? cause.cause : undefined) {
    const text = messageOf(cause)
    if (!parts.some((part) => part.includes(text))) parts.push(text)
  }
  return parts.join(': ')
}
