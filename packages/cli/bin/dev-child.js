// The first file of the process in which `capstan dev` runs an extension: every saved file starts one.
import module from 'node:module'

module.enableCompileCache?.()
await import('../src/dev/child-main.ts')
