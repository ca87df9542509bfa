/** The dry runs by which core compares templates of a topology. */
import { TopologyDryRunAnnotation } from '@capstan/api'
import type { Bench } from '../bench.ts'
import { createTemplate } from '../objects.ts'

const name = 'template'

export async function templates(bench: Bench): Promise<void> {
  for (const of of Object.values(bench.target)) {
    const [, changed] = of.examples
    if (!of.template || changed === undefined) continue
    const created = await createTemplate(bench, of.contract, name)
    const { kind } = of.template
    const body = {
      metadata: { name, namespace: bench.namespace, annotations: { [TopologyDryRunAnnotation]: '' } },
      spec: { template: { spec: structuredClone(changed) } },
    }
    await bench.send(`dry run of ${of.contract}`, created!, () =>
      bench.client.apply(kind, body as never, { fieldManager: 'capi-topology', dryRun: true, force: true }),
    )
    await bench.delete(kind, name)
  }
}
