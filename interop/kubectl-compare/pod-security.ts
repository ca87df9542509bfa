/** Commands for Pod Security Standards: every check, in versions before and after changes of checks. */
import type { Section } from './rows.ts'

const label = 'pod-security.kubernetes.io/'

/** Returns a command that creates a namespace with labels, and waits until pods can be created in it. */
const namespace = (name: string, labels: { readonly [label: string]: string }): string => {
  const members = Object.entries(labels).map(([key, value]) => `"${label}${key}":"${value}"`)
  const object = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"${name}","labels":{${members.join(',')}}}}`
  return `kubectl create -f - <<< '${object}' && kubectl wait --for=create serviceaccount/default -n ${name} --timeout=20s`
}

/** Versions before and after changes of checks, and a future version. */
const versions = ['v1.0', 'v1.18', 'v1.24', 'v1.30', 'v1.34', 'v1.99']

const tryAll = (name: string): string => `kubectl create -n ${name} --dry-run=server -f pod-security.yaml`

export const podSecurity: Section = {
  name: 'podsecurity',
  rows: [
    namespace('open', {}),
    tryAll('open'),
    namespace('baseline', { enforce: 'baseline' }),
    tryAll('baseline'),
    namespace('restricted', { enforce: 'restricted' }),
    tryAll('restricted'),
    namespace('warned', { warn: 'restricted', audit: 'baseline', 'audit-version': 'v1.20' }),
    tryAll('warned'),
    namespace('both', { enforce: 'baseline', warn: 'restricted', 'warn-version': 'v1.22' }),
    tryAll('both'),
    namespace('versions', { enforce: 'restricted', 'enforce-version': 'latest' }),
    ...versions.map(
      (version) => `kubectl label namespace versions ${label}enforce-version=${version} --overwrite && ${tryAll('versions')}`,
    ),
    // Invalid values of labels, the greatest valid version, an unknown label, and an annotation in place of a label.
    namespace('wrong', { enforce: 'strict', 'enforce-version': 'v2.0', audit: '', 'warn-version': 'v1.01' }),
    namespace('wrong', { enforce: 'Baseline' }),
    namespace('wrong', { 'enforce-version': 'v1.99999999999999999999' }),
    namespace('versioned', { enforce: 'restricted', 'enforce-version': 'v1.9223372036854775807', nothing: 'x' }),
    'kubectl run web --image=nginx -n versioned',
    `kubectl label namespace open ${label}warn=most`,
    `kubectl annotate namespace open ${label}warn=most`,
    `kubectl apply --server-side -f - <<< '{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"open","labels":{"${label}enforce":"none"}}}'`,
    `kubectl patch namespace open --type=json -p '[{"op":"add","path":"/metadata/labels","value":{"${label}audit-version":"1.20"}}]'`,
    // Warnings whose total length exceeds the API server's limit, so that they are truncated.
    `kubectl create -n warned --dry-run=server -o name -f - <<< '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"nodeSelector":{"beta.kubernetes.io/arch":"x"},"containers":['$(printf ',{"image":"i","name":"a-long-name-of-a-container-%d"}' {100..160} | cut -c2-)']}}'`,
    // Seccomp and AppArmor profiles that annotations of pods select.
    'kubectl create -n open -f pod-annotations.yaml',
    'kubectl get pods -n open -o yaml --show-managed-fields',
    'kubectl create -n baseline --dry-run=server -f pod-annotations.yaml',
    `kubectl create -n versions --dry-run=server -f pod-annotations.yaml`,
    'kubectl annotate pod app-armor-windows -n open container.apparmor.security.beta.kubernetes.io/a- container.apparmor.security.beta.kubernetes.io/b=x',
    'kubectl annotate pod seccomp-annotations -n open seccomp.security.alpha.kubernetes.io/pod=x',
    'kubectl delete pods,jobs -n open --all --now',
    // Kinds with pod templates.
    'kubectl create -n open -f pod-security-templates.yaml',
    'kubectl create -n baseline -f pod-security-templates.yaml',
    'kubectl create -n restricted -f pod-security-templates.yaml --dry-run=server',
    'kubectl create -n warned -f pod-security-templates.yaml --dry-run=server',
    'kubectl create -n both -f pod-security-templates.yaml --dry-run=server',
    'kubectl annotate deployment/d -n baseline note=x',
    'kubectl scale deployment/d -n baseline --replicas=2',
    'kubectl set image deployment/d -n baseline a=j',
    'kubectl create job now --from=cronjob/cj -n baseline',
    'kubectl rollout restart daemonset/ds -n baseline',
    'kubectl create deployment web --image=nginx -n restricted',
    `kubectl patch deployment/d -n baseline --subresource=status --type=merge -p '{"status":{"replicas":0}}'`,
    'kubectl delete deployment/d -n baseline',
    // Existing pods when the labels of their namespace change.
    'kubectl create -n open -f pod-security.yaml',
    `kubectl create -n open -f - <<< '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"another"},"spec":{"containers":[{"name":"a","image":"i","resources":{"requests":{"cpu":"1m"}}}]}}'`,
    `kubectl label namespace open ${label}enforce=baseline`,
    `kubectl label namespace open ${label}enforce=restricted --overwrite`,
    `kubectl label namespace open ${label}enforce=baseline --overwrite`,
    `kubectl label namespace open ${label}enforce-version=v1.20`,
    `kubectl label namespace open ${label}enforce-version=v1.21 ${label}enforce=privileged --overwrite`,
    `kubectl label namespace open ${label}enforce=restricted ${label}warn=privileged --overwrite`,
    'kubectl run web --image=nginx -n open',
    // Changes, eviction and deletion of existing pods, then new pods.
    'kubectl label pod plain -n open a=b',
    'kubectl set image pod/plain -n open a=j',
    'kubectl set image pod/good -n open a=j',
    'kubectl debug plain -n open --image=busybox --container=dbg --attach=false',
    'kubectl debug good -n open --image=busybox --container=dbg --attach=false',
    'kubectl debug good -n open --image=busybox --container=dbg --attach=false --profile=restricted',
    `kubectl patch pod another -n open --subresource=resize -p '{"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"2m"}}}]}}'`,
    `kubectl patch pod plain -n open --subresource=status --type=merge -p '{"status":{"phase":"Failed"}}'`,
    `kubectl create --raw /api/v1/namespaces/open/pods/plain/eviction -f - <<< '{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"plain"}}'`,
    'kubectl delete pod host-path -n open --now',
    `kubectl label namespace open ${label}enforce- ${label}warn- ${label}enforce-version-`,
    'kubectl run web --image=nginx -n open',
    `kubectl create --raw /api/v1/namespaces/restricted/pods -f - <<< '{"metadata":{"name":"raw"},"spec":{"containers":[{"name":"a","image":"i"}]}}'`,
    'kubectl delete namespace open baseline restricted warned both versions versioned --wait=false',
  ],
}
