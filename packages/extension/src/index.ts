export * from './runtime-client.ts'
export * from './hook-failed.ts'
// Extensions
export * from './answer.ts'
export * from './define-extension.ts'
export * from './server.ts'
export * from './call-hook.ts'
export * from './listen.ts'
// Calling them
export * from './client.ts'
export * from './transport.ts'
export * from './https-transport.ts'
export { HandlerRegistry, type Registration } from './registry.ts'
export { checkDiscovery } from './discovery.ts'
