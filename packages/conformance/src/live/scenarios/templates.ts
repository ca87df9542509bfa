/** Scenario that sends the dry-run requests by which core compares templates of a topology. */
import { TopologyDryRunAnnotation } from '@capstan/api'
import type { Bench } from '../bench.ts'
import { createTemplate } from '../objects.ts'

const name = 'template'

export async function templates(bench: Bench): Promise<void> {
  for (const target of Object.values(bench.target)) {
    const [, changed] = target.examples
    if (!target.template || changed === undefined) continue
    const created = await createTemplate(bench, target.contract, name)
    const { kind } = target.template
    const body = {
      metadata: { name, namespace: bench.namespace, annotations: { [TopologyDryRunAnnotation]: '' } },
      spec: { template: { spec: structuredClone(changed) } },
    }
    await bench.send(`dry run of ${target.contract}`, created!, () =>
      bench.client.apply(kind, body as never, { fieldManager: 'capi-topology', dryRun: true, force: true }),
    )
    await bench.delete(kind, name)
  }
}
