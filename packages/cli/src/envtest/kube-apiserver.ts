/**
 * The `kube-apiserver` program of a test environment: `capstan apiserver` without controllers, with kube-apiserver's error texts.
 */
import { messageOf, systemClock } from '@capstan/kube'
import { type Command, CommanderError } from 'commander'
import { apiserverCommand } from '../commands/apiserver.ts'
import type { Io } from '../io.ts'
import { ExitCodes } from '../io.ts'
import { defaultVersion } from '@capstan/apiserver'
import { missingFlags, translateArgv } from './kube-apiserver-argv.ts'

/** Runs the server until it is interrupted, or only prints help, version or an error. Resolves with the exit code. */
export async function runKubeApiserver(commandLine: readonly string[], io: Io): Promise<number> {
  const argv = translateArgv(commandLine)
  if (argv.includes('--version')) {
    io.out(`Kubernetes ${defaultVersion}`)
    return ExitCodes.done
  }
  const command = kubeApiserver(io)
    .exitOverride()
    .configureOutput({ writeOut: (text) => io.out(text.trimEnd()), writeErr: () => {} })
    // As upstream, required flags are checked after all flags are parsed.
    .hook('preAction', () => {
      const missing = missingFlags(argv)
      if (missing.length > 0) throw new Error(missing.length === 1 ? missing[0] : `[${missing.join(', ')}]`)
    })
  try {
    // Test suites rely on the absence of controllers, because envtest runs no kube-controller-manager.
    await command.parseAsync(['--controllers=', ...argv], { from: 'user' })
    return ExitCodes.done
  } catch (err) {
    if (err instanceof CommanderError && err.exitCode === 0) return ExitCodes.done
    io.err(err instanceof CommanderError ? usageError(err, command.args) : klogError(messageOf(err)))
    return ExitCodes.failed
  }
}

/** Returns the output of --help. */
export const kubeApiserverHelp = (io: Io): string => kubeApiserver(io).helpInformation().trimEnd()

const kubeApiserver = (io: Io): Command => apiserverCommand(io, () => {}).name('kube-apiserver')

/** Formats commander's errors as pflag and cobra format them upstream. */
function usageError({ code, message }: CommanderError, args: readonly string[]): string {
  const [, quoted = ''] = /'(?:-\w, )?([^' =]+)/.exec(message) ?? []
  switch (code) {
    case 'commander.unknownOption':
      return `Error: unknown flag: ${quoted}`
    case 'commander.optionMissingArgument':
      return `Error: flag needs an argument: ${quoted}`
    case 'commander.excessArguments':
      return `Error: "kube-apiserver" does not take any arguments, got [${args.map((arg) => JSON.stringify(arg)).join(' ')}]`
    case 'commander.invalidArgument': {
      const [, value = '', reason = ''] = /argument '([^]*?)' is invalid\. ([^]*)$/.exec(message) ?? []
      return `Error: invalid argument ${JSON.stringify(value)} for "${quoted}" flag: ${reason.replace(/\.$/, '')}`
    }
    default:
      return `Error: ${message.replace(/^error: /, '')}`
  }
}

/** Formats an error as klog does when kube-apiserver fails to start. */
function klogError(message: string): string {
  const time = new Date(systemClock.now()).toISOString()
  return `E${time.slice(5, 7)}${time.slice(8, 10)} ${time.slice(11, 23)}000       1 run.go:72] "command failed" err=${JSON.stringify(message)}`
}
