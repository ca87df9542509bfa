import { InvalidArgumentError, Option } from 'commander'

/** Creates the option `--data`. Rejects an empty value, such as an unset variable in a script: it would mean the working directory. */
export const dataOption = (description: string): Option =>
  new Option('--data <dir>', description).argParser((path) => {
    if (path.trim() === '') throw new InvalidArgumentError('expected a folder.')
    return path
  })
