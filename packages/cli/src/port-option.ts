/** Creates options for ports. In a separate module, so that a command can use them without loading the modules of servers. */
import { InvalidArgumentError, Option } from 'commander'

/** Creates an option whose value is a port number from 0 to 65535. */
export const portOption = (flags: string, description: string): Option =>
  new Option(flags, description).argParser((text) => {
    const port = Number(text)
    if (text.trim() === '' || !Number.isInteger(port) || port < 0 || port > 65535)
      throw new InvalidArgumentError('expected a port from 0 to 65535.')
    return port
  })
