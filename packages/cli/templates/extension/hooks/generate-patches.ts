import { GeneratePatches } from '@capstan/api'
import { on, patchTemplates, template } from '@capstan/extension'

/**
 * If the variable `region` is set, adds the label `region` with its value to the templates of MachineDeployments. The response contains the
 * changes as patches.
 */
export const generatePatches = on(
  GeneratePatches,
  { name: 'generate-patches' },
  patchTemplates([
    template({ holder: { kind: 'MachineDeployment' } }, ({ template, variables }) => {
      if (!variables.has('region')) return
      template.metadata.labels = { ...template.metadata.labels, region: variables.string('region') }
    }),
  ]),
)
