import { type Check, plural, quoted, type Rule, settings, sorted } from '../check.ts'

const allowOnly =
  (...types: readonly string[]): Rule =>
  ({ spec }) => {
    const isAllowed = (type = ''): boolean => type === '' || types.includes(type)
    const { violators, values } = settings(
      spec,
      ({ seLinuxOptions }) => seLinuxOptions,
      ({ type, user = '', role = '' }) => isAllowed(type) && user === '' && role === '',
    )
    if (violators.length === 0) return undefined
    const invalidTypes = sorted(values.flatMap(({ type }) => (type === undefined || isAllowed(type) ? [] : [type])))
    const faults = [
      ...(invalidTypes.length > 0 ? [`${plural('type', invalidTypes)} ${quoted(invalidTypes)}`] : []),
      ...(values.some(({ user = '' }) => user !== '') ? ['user may not be set'] : []),
      ...(values.some(({ role = '' }) => role !== '') ? ['role may not be set'] : []),
    ]
    const detail = `${violators.join(' and ')} set forbidden securityContext.seLinuxOptions: ${faults.join('; ')}`
    return { reason: 'seLinuxOptions', detail }
  }

const usualTypes = ['container_t', 'container_init_t', 'container_kvm_t']

/** SELinux types must be types for containers; user and role must not be set. */
export const seLinux: Check = {
  id: 'seLinuxOptions',
  level: 'baseline',
  rules: [
    { since: 0, rule: allowOnly(...usualTypes) },
    { since: 31, rule: allowOnly(...usualTypes, 'container_engine_t') },
  ],
}
