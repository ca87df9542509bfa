/** Parses the command line, runs the command, and returns the exit code. */
import type { Command as CommandType } from 'commander'
import { messageOf } from '@capstan/kube'
import { Command, CommanderError } from 'commander'
import type { Io } from './io.ts'
import { ExitCodes, Interrupted, UsageError } from './io.ts'
import { versions } from './versions.ts'

type MakeCommand = (io: Io, finish: (code: number) => void) => CommandType

/** Functions that load each command, so that a command starts without loading the modules of other commands. */
const commands: Readonly<Record<string, () => Promise<MakeCommand>>> = {
  up: async () => (await import('./commands/up.ts')).upCommand,
  new: async () => (await import('./commands/new.ts')).newCommand,
  dev: async () => (await import('./commands/dev.ts')).devCommand,
  apiserver: async () => (await import('./commands/apiserver.ts')).apiserverCommand,
  manifests: async () => (await import('./commands/manifests.ts')).manifestsCommand,
  manager: async () => (await import('./commands/manager.ts')).managerCommand,
  doctor: async () => (await import('./commands/doctor.ts')).doctorCommand,
  kubeconfig: async () => (await import('./commands/kubeconfig.ts')).kubeconfigCommand,
  hooks: async () => (await import('./commands/hooks.ts')).hooksCommand,
  conform: async () => (await import('./commands/conform.ts')).conformCommand,
  lint: async () => (await import('./commands/lint.ts')).lintCommand,
  xray: async () => (await import('./commands/xray.ts')).xrayCommand,
  envtest: async () => (await import('./commands/envtest.ts')).envtestCommand,
  backup: async () => (await import('./commands/backup.ts')).backupCommand,
  restore: async () => (await import('./commands/backup.ts')).restoreCommand,
  completion: async () => (await import('./commands/completion.ts')).completionCommand,
  version: async () => (await import('./commands/version.ts')).versionCommand,
}

/** Names of the top-level commands. */
export const commandNames: readonly string[] = Object.keys(commands)

/** Runs one command line; returns the exit code. Prints errors of the command to stderr instead of throwing them. */
export async function run(argv: readonly string[], io: Io): Promise<number> {
  let code: number = ExitCodes.done
  const program = new Command('capstan')
    .description(
      'Kubernetes Cluster API in one process: run, break and verify it. Its managers also run on any Kubernetes cluster',
    )
    .exitOverride()
    .configureOutput({ writeOut: (text) => io.out(text.trimEnd()), writeErr: (text) => io.err(text.trimEnd()) })
    .version(versions.capstan, '-V, --version', 'print the version of Capstan')
    .showHelpAfterError('Run capstan --help for the commands.')
  const finish = (result: number) => {
    code = result
  }
  // `capstan completion` and the general help need all commands; other commands load only their own module.
  const names =
    argv[0] !== undefined && argv[0] !== 'completion' && Object.hasOwn(commands, argv[0]) ? [argv[0]] : Object.keys(commands)
  for (const name of names) {
    const make = await commands[name]!()
    program.addCommand(withInheritance(make(io, finish), program))
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
    io.err(`capstan: ${messageChain(err)}`)
    return causesOf(err).some((cause) => cause instanceof Interrupted) ? ExitCodes.interrupted : ExitCodes.failed
  }
}

/**
 * Copies exit and output handling from the parent to a command and its subcommands, because commander does so only for commands that the
 * parent creates itself. Sets the hint that follows usage errors.
 */
function withInheritance(command: CommandType, parent: CommandType, path = `${parent.name()} ${command.name()}`): CommandType {
  command.copyInheritedSettings(parent)
  command.showHelpAfterError(`Run ${path} --help for its flags.`)
  for (const subcommand of command.commands) withInheritance(subcommand, command, `${path} ${subcommand.name()}`)
  return command
}

/** Joins the messages of an error and its causes with colons. Omits messages of causes that the message of an outer error contains. */
function messageChain(err: unknown): string {
  const messages: string[] = []
  for (const text of causesOf(err).map(messageOf)) if (!messages.some((part) => part.includes(text))) messages.push(text)
  return messages.join(': ')
}

/** Returns the error and its causes, outermost first. */
const causesOf = (err: unknown): unknown[] =>
  err === undefined ? [] : [err, ...causesOf(err instanceof Error ? err.cause : undefined)]
