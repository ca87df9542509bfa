import { describe, expect, test } from 'vitest'
import { deviceSelectorProblem } from './device-selector.ts'

const value = 'device.attributes["a"].b'

/** Expected results are those of kube-apiserver v1.36.2. */
describe('an expression that selects devices', () => {
  test.each([
    'device.driver == "a" && device.allowMultipleAllocations',
    'device.capacity["a"].memory.compareTo(quantity("1Gi")) > 0',
    'cel.bind(gpu, device.attributes["a"], gpu.ready && gpu.model == "a")',
    'cel.bind(device, device.driver, device == "a")',
    'device.attributes.a.b',
    value,
    `${value}.c == 1`,
    `true ? ${value} : true`,
    `true ? ${value} : 1`,
    `[${value}][0]`,
    `{"a": ${value}}["a"]`,
    `${value}.isGreaterThan(semver("1.0.0"))`,
  ])('may be `%s`', (source) => expect(deviceSelectorProblem(source)).toBeUndefined())

  test.each<[string, string]>([
    ['', "compilation failed: ERROR: <input>:1:0: Syntax error: mismatched input '<EOF>' expecting "],
    ['device', 'must evaluate to bool or the unknown type, not kubernetes.DRADevice'],
    ['device.attributes', 'must evaluate to bool or the unknown type, not map(string, map(string, google.protobuf.Any))'],
    ['dyn(true)', 'must evaluate to bool or the unknown type, not dyn'],
    ['device.model', "compilation failed: ERROR: <input>:1:7: undefined field 'model'"],
    ['self.a', "compilation failed: ERROR: <input>:1:1: undeclared reference to 'self' (in container '')"],
    [
      'device.capacity["a"].b.c',
      "compilation failed: ERROR: <input>:1:23: unexpected failed resolution of 'kubernetes.Quantity'",
    ],
    ['cel.bind(a.b, 1, true)', 'compilation failed: ERROR: <input>:1:11: cel.bind() variable names must be simple identifiers'],
    [
      `${value}.all(x, true)`,
      "compilation failed: ERROR: <input>:1:23: expression of type 'any' cannot be range of a comprehension (must be list, map, or dynamic)",
    ],
    [`[1, ${value}].size() == 2`, "compilation failed: ERROR: <input>:1:27: expected type 'int' but found 'any'"],
    [`[${value}, 1].size() == 2`, "compilation failed: ERROR: <input>:1:28: expected type 'any' but found 'int'"],
  ])('cannot be `%s`', (source, message) => {
    const problem = deviceSelectorProblem(source)
    expect(problem?.kind === 'invalid' && problem.message.slice(0, message.length)).toBe(message)
  })

  /** A term and how many times it may occur inside three nested loops, joined by `&&`, before the expression is too costly. */
  test.each<[string, number]>([
    ['device.driver == "a"', 9],
    ['device.driver.startsWith("abc")', 9],
    ['device.driver.matches("^a.*b$")', 1],
    ['device.allowMultipleAllocations', 13],
    ['device.attributes["a"].b == "x"', 5],
    ['device.attributes["a"].b == device.attributes["a"].c', 1],
    ['device.attributes["a"].b.matches("^a.*b$")', 1],
    ['device.attributes["a"].b.contains("x")', 2],
    ['device.attributes["a"].b > 3', 5],
    ['device.attributes["a"].v.isGreaterThan(semver("1.0.0"))', 4],
    ['device.capacity["a"].m.compareTo(quantity("1Gi")) > 0', 3],
    ['device.capacity["a"].m == quantity("1Gi")', 4],
    ['cel.bind(x, device.attributes["a"], x.y)', 1],
    ['cel.bind(x, device.attributes["a"], x.y == x.z && x.w)', 1],
    ['cel.bind(x, device.driver + device.driver, x == "a")', 0],
    ['"a" in device.attributes', 9],
    ['a in device.capacity', 6],
    ['has(device.attributes["a"].b)', 9],
    ['a == "x"', 13],
    ['a == b', 3],
    ['a + b == "x"', 1],
    ['device.attributes[a].size() > 3', 4],
    ['device.attributes[a].all(c, c == "x")', 0],
    ['device.attributes[a].exists(c, device.attributes[a][c] == b)', 0],
    ['device.driver in ["a", "b"]', 1],
    ['device.driver.lowerAscii() == "a"', 2],
    ['device.driver.split(".").size() > 2', 1],
    ['a.matches(device.driver)', 0],
    ['device.attributes["a"].?b.orValue(false)', 5],
    ['size(device.attributes) > 2', 6],
    ['device.capacity[a].map(c, c).size() > 1', 0],
    ['device.driver.replace("a", "b") == "c"', 1],
  ])('is too costly when its three nested loops contain `%s` more than %i times', (term, maximum) => {
    const problemOf = (times: number) => {
      const terms = Array.from({ length: times }, () => term).join(' && ')
      const inner = `device.attributes[a].all(c0, ${terms})`
      return deviceSelectorProblem(`device.attributes.all(a, device.capacity.exists(b, ${inner}))`)?.kind
    }
    expect([maximum === 0 ? undefined : problemOf(maximum), problemOf(maximum + 1)]).toEqual([undefined, 'too costly'])
  })
})
