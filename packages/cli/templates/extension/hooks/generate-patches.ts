import { GeneratePatches } from '@capstan/api'
import { on, patchTemplates, template } from '@capstan/extension'

/** Templates of workers are labelled with the variable `region`. What is changed here is what the answer says. */
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
