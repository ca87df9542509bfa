import { apiVersionOf } from '@capstan/kube'
import { expect, test } from 'vitest'
import { recordedColumns } from '../kinds/catalog.ts'
import { builtins } from '../registry/builtin.ts'

const printed = builtins.all.filter(({ printer }) => printer)

test.each(printed.map((definition) => [`${definition.apiVersion} ${definition.plural}`, definition] as const))(
  '%s has the columns of a real server',
  (_, { printer = [], plural, group, version }) => {
    const shown = ({ name, priority = 0 }: { name: string; priority?: number }) => `${name} ${priority}`
    const own = printer.filter(({ name }) => name !== 'Name' && name !== 'Age')
    expect(own.map(shown)).toEqual(recordedColumns(apiVersionOf({ group, version }), plural).map(shown))
  },
)
