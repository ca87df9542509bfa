/** The tree of commands: argv in, exit code out. */
import { Command, CommanderError } from 'commander'
import { apiserverCommand } from './commands/apiserver.ts'
import { kubeconfigCommand } from './commands/kubeconfig.ts'
import { managerCommand } from './commands/manager.ts'
import { upCommand } from './commands/up.ts'
import { versionCommand } from './commands/version.ts'
import type { Io } from './io.ts'
import { ExitCodes, UsageError } from './io.ts'

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
  for (const make of [upCommand, apiserverCommand, managerCommand, kubeconfigCommand, versionCommand]) {
    // Subcommands take over exit and output handling only when they are created through their parent.
    const command = make(io, finish).copyInheritedSettings(program)
    program.addCommand(command)
  }

  try {
    await program.parseAsync([...argv], { from: 'user' })
    return io.signal.aborted && code === ExitCodes.done && io.signal.reason === 'SIGINT' ? ExitCodes.done : code
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

/** An error with its causes, in one line. */
function chain(err: unknown): string {
  const parts: string[] = []
  for (let cause: unknown = err; cause !== undefined; cause = cause instanceof Error ? cause.cause : undefined) {
    const text = cause instanceof Error ? cause.message : String(cause)
    if (!parts.some((part) => part.includes(text))) parts.push(text)
  }
  return parts.join(': ')
}
