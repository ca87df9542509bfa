import { apiVersionOf, type KubeObject } from '@capstan/kube'
import { expect, test } from 'vitest'
import { recordedColumns } from '../../../../kubernetes-kinds/src/kinds/catalog.ts'
import { builtins } from '../../../../kubernetes-kinds/src/builtin-resources.ts'
import type { Resource } from '../../registry/resource.ts'
import { tableOf } from './table.ts'

const printed = builtins.all.filter(({ printer }) => printer)

test.each(printed.map((info) => [`${info.apiVersion} ${info.plural}`, info] as const))(
  '%s: the columns other than Name, Age and Created At are those of a real kube-apiserver',
  (_, { printer = [], plural, group, version }) => {
    const columnText = ({ name, priority = 0 }: { name: string; priority?: number }) => `${name} ${priority}`
    const otherColumns = printer.filter(({ name }) => name !== 'Name' && name !== 'Age')
    expect(otherColumns.map(columnText)).toEqual(recordedColumns(apiVersionOf({ group, version }), plural).map(columnText))
  },
)

test('the table of a custom resource has the columns before the first one whose JSONPath cannot be read', () => {
  const column = (name: string, jsonPath: string) => ({ name, type: 'string' as const, jsonPath })
  const columns = [column('Phase', '.status.phase'), column('Every second', '.spec.list[0:3:2]'), column('Last', '.spec.last')]
  const resource = { builtin: false, columns } as unknown as Resource
  const object = { metadata: { name: 'a' }, status: { phase: 'Ready' } } as unknown as KubeObject
  const table = tableOf(resource, object, { version: 'v1', includeObject: 'None', now: 0 })
  expect(table.columnDefinitions!.map(({ name }) => name)).toEqual(['Name', 'Phase'])
  expect(table.rows).toEqual([{ cells: ['a', 'Ready'], object: null }])
})
