/** Flags for ports. Separate from the servers, so that a command that only needs the flag does not load them. */
import { InvalidArgumentError, Option } from 'commander'

/** A port number, checked. */
export const portOption = (flags: string, description: string): Option =>
  new Option(flags, description).argParser((text) => {
    const port = Number(text)
    if (text.trim() === '' || !Number.isInteger(port) || port < 0 || port > 65535)
      throw new InvalidArgumentError('expected a port from 0 to 65535.')
    return port
  })
