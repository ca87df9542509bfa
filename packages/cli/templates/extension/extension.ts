import { defineExtension } from '@capstan/extension'

export const extension = defineExtension({
  name: '{{name}}',
  handlers: [],
})
