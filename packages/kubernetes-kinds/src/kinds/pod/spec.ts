/** Validates the spec of a pod or pod template. Upstream: ValidatePodSpec, v1.36. */
import {
  appendAll,
  duplicate,
  type FieldError,
  forbidden,
  invalid,
  labelValueProblems,
  notSupported,
  qualifiedNameProblems,
  repeats,
  required,
  tooLong,
  type Work,
} from '@capstan/kube'
import {
  dnsLabel,
  inRange,
  ipAddress,
  labels,
  labelSelector,
  oneOf,
  positive,
  problems,
  qualifiedName,
  requiredOneOf,
  subdomain,
} from '../checks.ts'
import type {
  Affinity,
  NodeSelector,
  NodeSelectorTerm,
  PodAffinityTerm,
  PodSpec,
  PodTemplateSpec,
  Toleration,
  TopologySpreadConstraint,
} from '../schemas/types.ts'
import {
  type PodContext,
  profile,
  userId,
  validateContainers,
  validateEphemeralContainers,
  validateInitContainers,
} from './containers.ts'
import { annotationErrors, profileMismatches } from './annotations.ts'
import { hostProcessErrors, hostUsersErrors, platformErrors, windowsOptionErrors } from './platforms.ts'
import { resourceAmount, resourceName } from './resources.ts'
import { sysctlErrors } from './sysctls.ts'
import { labelName, validateVolumes } from './volumes.ts'

/** Validates the spec of a pod or pod template. @param podName absent for a pod template */
export function* validatePodSpec(field: string, spec: PodSpec, podName?: string): Work<FieldError[]> {
  const [volumes, volumeErrors] = yield* validateVolumes(`${field}.volumes`, spec.volumes ?? [], podName)
  const pod: PodContext = { spec, volumes, claims: new Set((spec.resourceClaims ?? []).map(({ name }) => name)) }
  const errors = [
    ...volumeErrors,
    ...claimErrors(`${field}.resourceClaims`, spec),
    ...(yield* validateContainers(`${field}.containers`, pod)),
    ...(yield* validateInitContainers(`${field}.initContainers`, pod)),
    ...(yield* validateEphemeralContainers(`${field}.ephemeralContainers`, pod)),
    ...hostPorts(field, spec, podName !== undefined),
    ...requiredOneOf(`${field}.restartPolicy`, spec.restartPolicy, ['Always', 'OnFailure', 'Never']),
    ...requiredOneOf(`${field}.dnsPolicy`, spec.dnsPolicy, ['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None']),
    ...labels(`${field}.nodeSelector`, spec.nodeSelector),
    ...securityErrors(`${field}.securityContext`, spec),
    ...affinityErrors(`${field}.affinity`, spec.affinity),
    ...dnsErrors(`${field}.dnsConfig`, spec),
    ...(spec.readinessGates ?? []).flatMap(({ conditionType }, index) =>
      qualifiedName(`${field}.readinessGates[${index}].conditionType`, conditionType),
    ),
    ...schedulingGates(`${field}.schedulingGates`, spec),
    ...allSpreadErrors(`${field}.topologySpreadConstraints`, spec.topologySpreadConstraints ?? []),
    ...hostProcessErrors(field, spec),
    ...hostUsersErrors(field, spec),
    ...hostNameErrors(field, spec),
  ]
  yield
  const { serviceAccountName, nodeName, activeDeadlineSeconds, hostname, subdomain: domain, priorityClassName } = spec
  if (serviceAccountName) appendAll(errors, subdomain(`${field}.serviceAccountName`, serviceAccountName))
  if (nodeName) appendAll(errors, subdomain(`${field}.nodeName`, nodeName))
  if (activeDeadlineSeconds !== undefined) {
    appendAll(errors, inRange(`${field}.activeDeadlineSeconds`, activeDeadlineSeconds, 1, 2147483647))
  }
  if (hostname) appendAll(errors, dnsLabel(`${field}.hostname`, hostname))
  if (domain) appendAll(errors, dnsLabel(`${field}.subdomain`, domain))
  appendAll(errors, validateTolerations(`${field}.tolerations`, spec.tolerations ?? []))
  for (const [index, { ip, hostnames = [] }] of (spec.hostAliases ?? []).entries()) {
    appendAll(errors, ipAddress(`${field}.hostAliases[${index}].ip`, ip))
    for (const [itemIndex, name] of hostnames.entries()) {
      appendAll(errors, subdomain(`${field}.hostAliases[${index}].hostnames[${itemIndex}]`, name))
    }
  }
  if (priorityClassName) appendAll(errors, subdomain(`${field}.priorityClassName`, priorityClassName))
  if (spec.runtimeClassName !== undefined) appendAll(errors, subdomain(`${field}.runtimeClassName`, spec.runtimeClassName))
  if (spec.preemptionPolicy !== undefined) {
    appendAll(errors, requiredOneOf(`${field}.preemptionPolicy`, spec.preemptionPolicy, ['PreemptLowerPriority', 'Never']))
  }
  for (const [name, amount] of Object.entries(spec.overhead ?? {})) {
    const valuePath = `${field}.overhead.limits[${name}]`
    appendAll(errors, resourceName(valuePath, name), resourceAmount(valuePath, name, amount))
  }
  return [...errors, ...platformErrors(field, spec)]
}

/** Validates the metadata and the spec of a pod template. Upstream: ValidatePodTemplateSpec. */
export function* validatePodTemplate(field: string, { metadata, spec }: PodTemplateSpec): Work<FieldError[]> {
  const errors = [
    ...labels(`${field}.labels`, metadata.labels),
    ...Object.keys(metadata.annotations ?? {}).flatMap((key) =>
      problems(`${field}.annotations`, key, qualifiedNameProblems(key.toLowerCase())),
    ),
    ...annotationErrors(`${field}.annotations`, { metadata, spec }),
    ...(yield* validatePodSpec(`${field}.spec`, spec)),
    ...profileMismatches(`${field}.spec`, { metadata, spec }),
  ]
  if (spec.ephemeralContainers?.length) {
    errors.push(forbidden(`${field}.spec.ephemeralContainers`, 'ephemeral containers not allowed in pod template'))
  }
  return errors
}

/** Validates a list of tolerations. Upstream: ValidateTolerations. */
export function validateTolerations(field: string, tolerations: readonly Toleration[]): FieldError[] {
  return tolerations.flatMap(({ key = '', operator = '', value = '', effect = '', tolerationSeconds }, index) => {
    const valuePath = `${field}[${index}]`
    const errors = key === '' ? [] : labelName(`${valuePath}.key`, key)
    if (key === '' && operator !== 'Exists') {
      const text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
      errors.push(invalid(`${valuePath}.operator`, operator, text))
    }
    if (tolerationSeconds !== undefined && effect !== 'NoExecute') {
      errors.push(invalid(`${valuePath}.effect`, effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"))
    }
    if (operator === '' || operator === 'Equal') {
      const texts = labelValueProblems(value)
      if (texts.length > 0) errors.push(invalid(`${valuePath}.operator`, value, texts.join(';')))
    } else if (operator === 'Exists') {
      if (value !== '') errors.push(invalid(`${valuePath}.operator`, value, "value must be empty when `operator` is 'Exists'"))
    } else {
      const knownOperators = operator === 'Lt' || operator === 'Gt' ? ['Equal', 'Exists', 'Lt', 'Gt'] : ['Equal', 'Exists']
      errors.push(notSupported(`${valuePath}.operator`, operator, knownOperators))
    }
    if (effect !== '') appendAll(errors, oneOf(`${valuePath}.effect`, effect, TaintEffects))
    return errors
  })
}

export const TaintEffects = ['NoSchedule', 'PreferNoSchedule', 'NoExecute']

/** Validates that host ports equal container ports when hostNetwork is set. Templates may omit host ports. */
function hostPorts(field: string, { hostNetwork, containers = [] }: PodSpec, isPod: boolean): FieldError[] {
  if (!hostNetwork) return []
  return (containers ?? []).flatMap(({ ports = [] }, index) =>
    ports.flatMap(({ hostPort = 0, containerPort }, itemIndex) =>
      (isPod || hostPort !== 0) && hostPort !== containerPort
        ? [
            invalid(
              `${field}.containers[${index}].ports[${itemIndex}].hostPort`,
              hostPort,
              'must match `containerPort` when `hostNetwork` is true',
            ),
          ]
        : [],
    ),
  )
}

function securityErrors(valuePath: string, spec: PodSpec): FieldError[] {
  const { securityContext: context, shareProcessNamespace, hostPID } = spec
  if (!context) return []
  const errors = [
    ...userId(`${valuePath}.fsGroup`, context.fsGroup),
    ...userId(`${valuePath}.runAsUser`, context.runAsUser),
    ...userId(`${valuePath}.runAsGroup`, context.runAsGroup),
    ...(context.supplementalGroups ?? []).flatMap((group, index) => userId(`${valuePath}.supplementalGroups[${index}]`, group)),
  ]
  if (shareProcessNamespace && hostPID) {
    errors.push(invalid(`${valuePath}.shareProcessNamespace`, true, 'ShareProcessNamespace and HostPID cannot both be enabled'))
  }
  appendAll(errors, sysctlErrors(`${valuePath}.sysctls`, spec))
  if (context.fsGroupChangePolicy !== undefined) {
    appendAll(errors, oneOf(`${valuePath}.fsGroupChangePolicy`, context.fsGroupChangePolicy, ['Always', 'OnRootMismatch']))
  }
  appendAll(errors, profile(`${valuePath}.seccompProfile`, context.seccompProfile, 'seccomp', 'seccompProfile'))
  appendAll(errors, windowsOptionErrors(`${valuePath}.windowsOptions`, context.windowsOptions))
  appendAll(errors, profile(`${valuePath}.appArmorProfile`, context.appArmorProfile, 'AppArmor', 'appArmorProfile'))
  if (context.supplementalGroupsPolicy !== undefined) {
    appendAll(errors, oneOf(`${valuePath}.supplementalGroupsPolicy`, context.supplementalGroupsPolicy, ['Merge', 'Strict']))
  }
  if (context.seLinuxChangePolicy !== undefined) {
    appendAll(errors, oneOf(`${valuePath}.seLinuxChangePolicy`, context.seLinuxChangePolicy, ['MountOption', 'Recursive']))
  }
  return errors
}

function affinityErrors(valuePath: string, affinity: Affinity | undefined): FieldError[] {
  if (!affinity) return []
  const { nodeAffinity, podAffinity, podAntiAffinity } = affinity
  const errors: FieldError[] = []
  const [requiredField, preferredField] = [
    'requiredDuringSchedulingIgnoredDuringExecution',
    'preferredDuringSchedulingIgnoredDuringExecution',
  ] as const
  if (nodeAffinity) {
    const selector = nodeAffinity[requiredField]
    if (selector) appendAll(errors, validateNodeSelector(`${valuePath}.nodeAffinity.${requiredField}`, selector))
    for (const [index, { weight, preference }] of (nodeAffinity[preferredField] ?? []).entries()) {
      const field = `${valuePath}.nodeAffinity.${preferredField}[${index}]`
      appendAll(errors, weightErrors(field, weight), nodeSelectorTerm(`${field}.preference`, preference, false))
    }
  }
  for (const [name, rules] of Object.entries({ podAffinity, podAntiAffinity })) {
    for (const [index, term] of (rules?.[requiredField] ?? []).entries())
      appendAll(errors, podTerm(`${valuePath}.${name}.${requiredField}[${index}]`, term))
    for (const [index, { weight, podAffinityTerm }] of (rules?.[preferredField] ?? []).entries()) {
      const field = `${valuePath}.${name}.${preferredField}[${index}]`
      appendAll(errors, weightErrors(field, weight), podTerm(`${field}.podAffinityTerm`, podAffinityTerm))
    }
  }
  return errors
}

const weightErrors = (field: string, weight: number): FieldError[] =>
  weight <= 0 || weight > 100 ? [invalid(`${field}.weight`, weight, 'must be in the range 1-100')] : []

/** Validates a node selector, which needs at least one term. Upstream: ValidateNodeSelector. */
export function validateNodeSelector(field: string, { nodeSelectorTerms }: NodeSelector): FieldError[] {
  const terms = nodeSelectorTerms ?? []
  if (terms.length === 0) return [required(`${field}.nodeSelectorTerms`, 'must have at least one node selector term')]
  return terms.flatMap((term, index) => nodeSelectorTerm(`${field}.nodeSelectorTerms[${index}]`, term, true))
}

function nodeSelectorTerm(
  field: string,
  { matchExpressions = [], matchFields = [] }: NodeSelectorTerm,
  checksValues: boolean,
): FieldError[] {
  const errors: FieldError[] = []
  for (const [index, { key, operator, values = [] }] of matchExpressions.entries()) {
    const valuePath = `${field}.matchExpressions[${index}]`
    switch (operator) {
      case 'In':
      case 'NotIn':
        if (values.length === 0)
          errors.push(required(`${valuePath}.values`, "must be specified when `operator` is 'In' or 'NotIn'"))
        break
      case 'Exists':
      case 'DoesNotExist':
        if (values.length > 0) {
          errors.push(forbidden(`${valuePath}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
        }
        break
      case 'Gt':
      case 'Lt':
        if (values.length !== 1) {
          errors.push(required(`${valuePath}.values`, "must be specified single value when `operator` is 'Lt' or 'Gt'"))
        }
        break
      default:
        errors.push(invalid(`${valuePath}.operator`, operator, 'not a valid selector operator'))
    }
    appendAll(errors, labelName(`${valuePath}.key`, key))
    if (!checksValues) continue
    for (const [itemIndex, value] of values.entries()) {
      appendAll(errors, problems(`${valuePath}.values[${itemIndex}]`, value, labelValueProblems(value)))
    }
  }
  for (const [index, { key, operator, values = [] }] of matchFields.entries()) {
    const valuePath = `${field}.matchFields[${index}]`
    if (operator !== 'In' && operator !== 'NotIn') {
      errors.push(invalid(`${valuePath}.operator`, operator, 'not a valid selector operator'))
    } else if (values.length !== 1) {
      errors.push(
        required(`${valuePath}.values`, "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"),
      )
    }
    if (key !== 'metadata.name') errors.push(invalid(`${valuePath}.key`, key, 'not a valid field selector key'))
    else
      for (const [itemIndex, value] of values.entries()) appendAll(errors, subdomain(`${valuePath}.values[${itemIndex}]`, value))
  }
  return errors
}

function podTerm(field: string, term: PodAffinityTerm): FieldError[] {
  return [
    ...labelSelector(`${field}.labelSelector`, term.labelSelector),
    ...labelSelector(`${field}.namespaceSelector`, term.namespaceSelector),
    ...(term.namespaces ?? []).flatMap((name) => dnsLabel(`${field}.namespace`, name)),
    ...(term.topologyKey ? [] : [required(`${field}.topologyKey`, 'can not be empty')]),
    ...labelName(`${field}.topologyKey`, term.topologyKey),
  ]
}

function dnsErrors(valuePath: string, { dnsPolicy, dnsConfig }: PodSpec): FieldError[] {
  if (dnsPolicy === 'None') {
    if (!dnsConfig) return [required(valuePath, 'must provide `dnsConfig` when `dnsPolicy` is None')]
    if (!dnsConfig.nameservers?.length) {
      return [required(`${valuePath}.nameservers`, 'must provide at least one DNS nameserver when `dnsPolicy` is None')]
    }
  }
  const { nameservers = [], searches = [], options = [] } = dnsConfig ?? {}
  const errors: FieldError[] = []
  if (nameservers.length > 3)
    errors.push(invalid(`${valuePath}.nameservers`, nameservers, 'must not have more than 3 nameservers'))
  for (const [index, server] of nameservers.entries()) appendAll(errors, ipAddress(`${valuePath}.nameservers[${index}]`, server))
  if (searches.length > 32) errors.push(invalid(`${valuePath}.searches`, searches, 'must not have more than 32 search paths'))
  if (searches.join(' ').length > 2048) {
    const text = 'must not have more than 2048 characters (including spaces) in the search list'
    errors.push(invalid(`${valuePath}.searches`, searches, text))
  }
  for (const [index, search] of searches.entries()) {
    // Search paths may contain underscores, unlike other subdomains.
    if (search !== '.')
      appendAll(errors, subdomain(`${valuePath}.searches[${index}]`, search.replace(/\.$/, '').replaceAll('_', 'x')))
  }
  for (const [index, { name }] of options.entries()) {
    if (!name) errors.push(required(`${valuePath}.options[${index}]`, 'must not be empty'))
  }
  return errors
}

function schedulingGates(field: string, { schedulingGates: gates = [] }: PodSpec): FieldError[] {
  const earlierNames = new Set<string>()
  return gates.flatMap(({ name }, index) => {
    const errors = qualifiedName(`${field}[${index}]`, name)
    if (earlierNames.has(name)) errors.push(duplicate(`${field}[${index}]`, name))
    earlierNames.add(name)
    return errors
  })
}

function allSpreadErrors(field: string, constraints: readonly TopologySpreadConstraint[]): FieldError[] {
  // As upstream: of two constraints with the same topologyKey and whenUnsatisfiable, the earlier one is reported as the duplicate.
  const repeated = repeats(
    constraints.map((constraint) => JSON.stringify([constraint.topologyKey, constraint.whenUnsatisfiable])).reverse(),
  ).reverse()
  return constraints.flatMap((constraint, index) => spreadErrors(`${field}[${index}]`, constraint, repeated[index]!))
}

function spreadErrors(valuePath: string, constraint: TopologySpreadConstraint, isRepeated: boolean): FieldError[] {
  const { maxSkew, topologyKey, whenUnsatisfiable, minDomains, nodeAffinityPolicy, nodeTaintsPolicy } = constraint
  const errors = positive(`${valuePath}.maxSkew`, maxSkew)
  if (!topologyKey) errors.push(required(`${valuePath}.topologyKey`, 'can not be empty'))
  appendAll(errors, oneOf(`${valuePath}.whenUnsatisfiable`, whenUnsatisfiable, ['DoNotSchedule', 'ScheduleAnyway']))
  if (isRepeated) {
    errors.push(duplicate(`${valuePath}.{topologyKey, whenUnsatisfiable}`, `{${topologyKey}, ${whenUnsatisfiable}}`))
  }
  if (minDomains !== undefined) {
    appendAll(errors, positive(`${valuePath}.minDomains`, minDomains))
    if (whenUnsatisfiable !== 'DoNotSchedule') {
      const text = `can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ${whenUnsatisfiable}`
      errors.push(invalid(`${valuePath}.minDomains`, minDomains, text))
    }
  }
  for (const [name, policy] of Object.entries({ nodeAffinityPolicy, nodeTaintsPolicy })) {
    if (policy !== undefined) appendAll(errors, oneOf(`${valuePath}.${name}`, policy, ['Honor', 'Ignore']))
  }
  return [...errors, ...labelSelector(`${valuePath}.labelSelector`, constraint.labelSelector)]
}

/** Validates the resource claims of a pod. Upstream: validatePodResourceClaims. */
function claimErrors(field: string, { resourceClaims: claims = [] }: PodSpec): FieldError[] {
  const repeated = repeats(claims.map(({ name }) => name))
  return claims.flatMap(({ name, resourceClaimName: claim, resourceClaimTemplateName: template }, index) => {
    const valuePath = `${field}[${index}]`
    const goValue = { Name: name, ResourceClaimName: claim ?? null, ResourceClaimTemplateName: template ?? null }
    const errors: FieldError[] = []
    if (!name) errors.push(required(`${valuePath}.name`))
    else if (repeated[index]) errors.push(duplicate(`${valuePath}.name`, name))
    else appendAll(errors, dnsLabel(`${valuePath}.name`, name))
    if (claim !== undefined && template !== undefined) {
      errors.push(
        invalid(valuePath, goValue, 'at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified'),
      )
    } else if (claim === undefined && template === undefined)
      errors.push(invalid(valuePath, goValue, 'must specify one of: `resourceClaimName`, `resourceClaimTemplateName`'))
    if (claim !== undefined) appendAll(errors, subdomain(`${valuePath}.resourceClaimName`, claim))
    if (template !== undefined) appendAll(errors, subdomain(`${valuePath}.resourceClaimTemplateName`, template))
    return errors
  })
}

function hostNameErrors(field: string, { hostnameOverride, setHostnameAsFQDN, hostNetwork }: PodSpec): FieldError[] {
  if (hostnameOverride === undefined) return []
  const valuePath = `${field}.hostnameOverride`
  const errors: FieldError[] = []
  if (setHostnameAsFQDN) errors.push(forbidden(valuePath, 'may not be specified when setHostnameAsFQDN is true'))
  if (hostNetwork) errors.push(forbidden(valuePath, 'may not be specified when hostNetwork is true'))
  if (hostnameOverride.length > 64) errors.push(tooLong(valuePath, 64))
  return [...errors, ...subdomain(valuePath, hostnameOverride)]
}
