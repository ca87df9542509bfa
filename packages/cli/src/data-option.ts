import { InvalidArgumentError, Option } from 'commander'

/** The option `--data`, which rejects an empty text: a script with an unset variable must not lose its state. */
export const dataOption = (description: string): Option =>
  new Option('--data <dir>', description).argParser((path) => {
    if (path.trim() === '') throw new InvalidArgumentError('expected a folder.')
    return path
  })
