import { InvalidArgumentError, Option } from 'commander'

/** Creates the option `--data`. Rejects an empty value, so that a script with an unset variable does not lose its state. */
export const dataOption = (description: string): Option =>
  new Option('--data <dir>', description).argParser((path) => {
    if (path.trim() === '') throw new InvalidArgumentError('expected a folder.')
    return path
  })
