import { apiVersionOf } from '@capstan/kube'
import { expect, test } from 'vitest'
import { recordedColumns } from '../../../../kubernetes-kinds/src/kinds/catalog.ts'
import { builtins } from '../../../../kubernetes-kinds/src/builtin-resources.ts'

const printed = builtins.all.filter(({ printer }) => printer)

test.each(printed.map((info) => [`${info.apiVersion} ${info.plural}`, info] as const))(
  '%s: the columns other than Name and Age are those of a real kube-apiserver',
  (_, { printer = [], plural, group, version }) => {
    const columnText = ({ name, priority = 0 }: { name: string; priority?: number }) => `${name} ${priority}`
    const otherColumns = printer.filter(({ name }) => name !== 'Name' && name !== 'Age')
    expect(otherColumns.map(columnText)).toEqual(recordedColumns(apiVersionOf({ group, version }), plural).map(columnText))
  },
)
