import { GeneratePatches } from '@capstan/api'
import { on, patchTemplates, template } from '@capstan/extension'

/**
 * Adds the label `region` to the templates of MachineDeployments, with the value of the variable `region`. The response contains the changes
 * as patches.
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
