/** All functions that CEL expressions can call; `parse.ts` has the macros. Upstream: apiserver/pkg/cel/environment/base.go, v0.36. */
import { authorizer } from './library/authorizer.ts'
import { format } from './library/format.ts'
import { lists, sets } from './library/lists.ts'
import { net } from './library/net.ts'
import { optionals } from './library/optionals.ts'
import { quantity } from './library/quantity.ts'
import { regex } from './library/regex.ts'
import { semver } from './library/semver.ts'
import { basics, conversions, operators } from './library/standard.ts'
import { strings } from './library/strings.ts'
import { time } from './library/time.ts'
import { url } from './library/url.ts'
import { functionsOf } from './signature.ts'

export const kubernetesFunctions = functionsOf([
  operators,
  conversions,
  basics,
  time,
  strings,
  lists,
  sets,
  optionals,
  regex,
  url,
  net,
  quantity,
  semver,
  format,
  authorizer,
])
