import { ClusterClass } from '@capstan/api'
import type { Cache, Index, MapFunction } from '@capstan/controller'
import { keyOf, type KubeObject, parseApiVersion } from '@capstan/kube'
import { contractRefOf } from '../external/get.ts'
import { templateRefsOf } from './template-refs.ts'
import { configOf, discoveringPatches } from './variables.ts'

/** ClusterClasses by the templates that they refer to, except remediation templates. */
export const ClassesByTemplate: Index<ClusterClass> = {
  name: 'templateRefs',
  kind: ClusterClass,
  values: ({ metadata, spec }) =>
    templateRefsOf(spec).map((ref) => {
      const { apiGroup, kind, name } = contractRefOf(ref)
      return templateText(apiGroup, kind, metadata.namespace ?? '', name)
    }),
}

/** ClusterClasses by the names of the ExtensionConfigs whose handlers return variables of the class. */
export const ClassesByExtension: Index<ClusterClass> = {
  name: 'extensions',
  kind: ClusterClass,
  values: (clusterClass) =>
    discoveringPatches(clusterClass).map(({ external }) => configOf(external!.discoverVariablesExtension!)),
}

/** Returns the ClusterClasses that refer to a template, in any of its API versions; none for a remediation template. */
export const classesOfTemplate = (cache: Cache, { apiVersion, kind, metadata }: KubeObject): readonly ClusterClass[] =>
  cache.byIndex(ClassesByTemplate, templateText(parseApiVersion(apiVersion).group, kind, metadata.namespace ?? '', metadata.name))

/** Maps a template to the keys of the classes that refer to it. */
export const concernedClasses: MapFunction = (template, cache) => classesOfTemplate(cache, template).map(keyOf)

const templateText = (group: string, kind: string, namespace: string, name: string): string =>
  `${kind}.${group} ${namespace}/${name}`
