/** The kinds of `networking.k8s.io/v1`. */
import type { KindTable } from './builtin-kind.ts'
import { ingressclasses } from './networking/ingress-class.ts'
import { ingresses } from './networking/ingress.ts'
import { networkpolicies } from './networking/network-policy.ts'
import { ipaddresses, servicecidrs } from './networking/service-address.ts'

export const networking: KindTable = { ingressclasses, ingresses, ipaddresses, networkpolicies, servicecidrs }
