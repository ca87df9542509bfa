import { BeforeClusterCreate, createCatalog, ExtensionConfig, hookCatalog } from '@capstan/api'
import { createExtensionClient, defineExtension, extensionServer, inProcess, on, proceedNow } from '@capstan/extension'
import { getCondition, silent, VirtualClock } from '@capstan/kube'
import { testEnv } from '@capstan/testing'
import { expect, test } from 'vitest'
import { extensionConfigAdmission } from './admission.ts'
import { createExtensionConfigController } from './controller.ts'

test('a handler of a deprecated hook version is reported in a condition and in warnings for writes of its ExtensionConfig', async () => {
  const deprecated = { ...BeforeClusterCreate, deprecated: { release: 'v1.20.0', date: '2028-01-01' } }
  const catalog = createCatalog(hookCatalog.map((hook) => (hook === BeforeClusterCreate ? deprecated : hook)))
  const extension = defineExtension({ name: 'x', handlers: [on(BeforeClusterCreate, { name: 'gate' }, () => proceedNow())] })
  const clock = new VirtualClock()
  const extensions = createExtensionClient({
    transport: inProcess(extensionServer(extension)),
    catalog,
    clock,
    log: silent,
    namespaceLabels: async () => ({}),
  })
  const env = await testEnv({
    clock,
    kinds: [ExtensionConfig],
    admission: [extensionConfigAdmission(catalog)],
    controllers: [createExtensionConfigController({ extensions })],
  })
  try {
    await env.client.create(ExtensionConfig, { metadata: { name: 'x' }, spec: { clientConfig: { url: 'https://x' } } })
    await env.settle()
    const text = 'gate.x: hooks.runtime.cluster.x-k8s.io/v1alpha1, Hook=BeforeClusterCreate is deprecated since v1.20.0'
    const config = await env.client.get(ExtensionConfig, { name: 'x' })
    expect(getCondition(config, 'DeprecatedHooks')).toMatchObject({
      status: 'True',
      reason: 'DeprecatedVersionsInUse',
      message: text,
    })
    expect(config.metadata.annotations).toEqual({ 'runtime.capstan.dev/last-discovered': '2026-01-01T00:00:00Z' })

    const warnings: string[] = []
    const request = {
      operation: 'UPDATE',
      oldObject: config,
      dryRun: false,
      reader: env.client,
      warn: (warning: string) => warnings.push(warning),
    }
    await extensionConfigAdmission(catalog).validate?.(config, request as never)
    expect(warnings).toEqual([text])
  } finally {
    await env.close()
  }
})
