/** Executes a parsed template over data. Upstream: Go's text/template/exec.go, for data as encoding/json decodes it. */
import { limited, LargestText, quote, text } from './format.ts'
import type { Branch, Command, Node, Operand, Pipe, Statement } from './node.ts'
import { nodeText } from './node.ts'
import type { Definitions } from './parser.ts'
import type { ParameterType, TemplateFunction, Value } from './value.ts'
import { byteLength, GoStruct, has, isMap, sortedKeys, truth, typeName } from './value.ts'

export interface Execution {
  readonly name: string
  readonly source: string
  readonly definitions: Definitions
  readonly functions: ReadonlyMap<string, TemplateFunction>
  /** Whether a missing map key is an error (`missingkey=error`). */
  readonly missingKeyFails: boolean
}

/** Deepest nesting of template calls. Go allows 100,000. */
const DeepestCall = 500
/** Most actions and iterations of one execution. */
const MostSteps = 1_000_000

/** Marks a command without a piped value. */
const Nothing = Symbol('nothing')
type Piped = Value | typeof Nothing

type Flow = 'on' | 'break' | 'continue'

interface Variable {
  readonly name: string
  value: Value
}

/** @throws Error with Go's text: `template: name:1:2: executing "name" at <.x>: map has no entry for key "x"` */
export function execute({ name, source, definitions, functions, missingKeyFails }: Execution, data: Value): string {
  let out = ''
  let steps = 0
  let templateName = name
  let depth = 0
  let variables: Variable[] = [{ name: '$', value: data }]
  /** The node that error messages refer to. */
  let current: Node | undefined

  const fail = (message: string): never => {
    if (!current) throw new Error(`template: ${name}: ${message}`)
    const before = source.slice(0, current.pos)
    const line = before.split('\n').length
    const column = byteLength(before.slice(before.lastIndexOf('\n') + 1))
    const context = `${name}:${line}:${column}: executing ${quote(templateName)} at <${nodeText(current)}>`
    throw new Error(`template: ${context}: ${message}`)
  }
  const write = (part: string): void => {
    out += part
    if (out.length > LargestText) fail(`output is larger than ${LargestText} bytes`)
  }
  const step = (): void => {
    if (++steps > MostSteps) fail(`execution takes more than ${MostSteps} steps`)
  }

  // Statements

  function walk(statements: readonly Statement[], dot: Value): Flow {
    for (const statement of statements) {
      step()
      const flow = run(statement, dot)
      if (flow !== 'on') return flow
    }
    return 'on'
  }

  function run(statement: Statement, dot: Value): Flow {
    current = statement
    switch (statement.type) {
      case 'text':
        write(statement.text)
        return 'on'
      case 'action': {
        const value = pipeValue(dot, statement.pipe)
        if (statement.pipe.variables.length > 0) return 'on'
        current = statement
        write(value == null ? '<no value>' : text(value))
        return 'on'
      }
      case 'if':
      case 'with': {
        const scope = variables.length
        const value = pipeValue(dot, statement.pipe)
        const flow = truth(value) ? walk(statement.body, statement.type === 'with' ? value : dot) : walk(statement.otherwise, dot)
        variables.length = scope
        return flow
      }
      case 'range':
        return range(statement, dot)
      case 'template':
        call(statement.name, statement.pipe === undefined ? undefined : pipeValue(dot, statement.pipe), statement)
        return 'on'
      case 'break':
      case 'continue':
        return statement.type
    }
  }

  function range(statement: Branch, dot: Value): Flow {
    const scope = variables.length
    const { pipe } = statement
    const over = pipeValue(dot, pipe)
    const entries = entriesOf(over, pipe)
    const inner = variables.length
    let flow: Flow = 'on'
    for (const [key, item] of entries) {
      step()
      const [first, second] = pipe.variables
      if (first !== undefined) {
        const values = second === undefined ? [item] : [item, key]
        // Declared variables are on top of the stack, the element's last; assigned ones are found by name.
        if (pipe.assigns) {
          assign(first, second === undefined ? item : key)
          if (second !== undefined) assign(second, item)
        } else values.forEach((value, index) => (variables[inner - 1 - index]!.value = value))
      }
      flow = walk(statement.body, item)
      variables.length = inner
      if (flow === 'break') break
    }
    const result = entries.length === 0 ? walk(statement.otherwise, dot) : 'on'
    variables.length = scope
    return result
  }

  function entriesOf(over: Value, pipe: Pipe): [Value, Value][] {
    if (over === null || over === undefined) return []
    if (Array.isArray(over)) return over.map((item, index) => [BigInt(index), item])
    if (typeof over === 'bigint') {
      if (pipe.variables.length > 1) fail(`can't use ${over} to iterate over more than one variable`)
      if (over > MostSteps) fail(`execution takes more than ${MostSteps} steps`)
      return Array.from({ length: Math.max(0, Number(over)) }, (_, index) => [BigInt(index), BigInt(index)])
    }
    if (isMap(over)) return sortedKeys(over).map((key) => [key, over[key]])
    return fail(`range can't iterate over ${text(over)}`)
  }

  function call(called: string, data: Value, at: Node): void {
    current = at
    const statements = definitions.get(called)
    if (!statements) return fail(`template ${quote(called)} not defined`)
    if (depth === DeepestCall) fail(`exceeded maximum template depth (${DeepestCall})`)
    const outer = { variables, templateName }
    depth++
    variables = [{ name: '$', value: data }]
    templateName = called
    walk(statements, data)
    depth--
    ;({ variables, templateName } = outer)
  }

  // Values

  function pipeValue(dot: Value, pipe: Pipe): Value {
    current = pipe
    let value: Piped = Nothing
    // A nil result of a command counts as no value.
    for (const command of pipe.commands) value = commandValue(dot, command, value) ?? undefined
    const result = value === Nothing ? undefined : value
    for (const variable of pipe.variables) {
      if (pipe.assigns) assign(variable, result)
      else variables.push({ name: variable, value: result })
    }
    return result
  }

  function assign(name: string, value: Value): void {
    const variable = variables.findLast((candidate) => candidate.name === name)
    if (!variable) return fail(`undefined variable: ${name}`)
    variable.value = value
  }

  function commandValue(dot: Value, command: Command, piped: Piped): Value {
    const [first, ...args] = command.operands
    switch (first.type) {
      case 'field':
      case 'variable':
      case 'chain':
        return path(dot, first, args, piped)
      case 'function':
        return callFunction(dot, first, command, args, piped)
      case 'pipe':
        if (args.length > 0 || piped !== Nothing) notAFunction(first, args, piped)
        return pipeValue(dot, first)
      case 'nil':
      case 'dot':
      case 'constant':
        current = first
        notAFunction(first, args, piped)
        if (first.type === 'nil') fail('nil is not a command')
        return operandValue(dot, first)
    }
  }

  function notAFunction(first: Operand, args: readonly Operand[], piped: Piped): void {
    if (args.length > 0 || piped !== Nothing) {
      current = first
      fail(`can't give argument to non-function ${nodeText(first)}`)
    }
  }

  /** Evaluates an operand used as an argument. */
  function operandValue(dot: Value, operand: Operand): Value {
    current = operand
    switch (operand.type) {
      case 'dot':
        return dot
      case 'nil':
        return undefined
      case 'constant':
        return operand.value
      case 'field':
      case 'variable':
      case 'chain':
        return path(dot, operand, [], Nothing)
      case 'function':
        return callFunction(dot, operand, operand, [], Nothing)
      case 'pipe':
        return pipeValue(dot, operand)
    }
  }

  /** Resolves a field chain. Only the last element may be a method with arguments. */
  function path(
    dot: Value,
    operand: Extract<Operand, { names: readonly string[] }>,
    args: readonly Operand[],
    piped: Piped,
  ): Value {
    current = operand
    let names = operand.names
    let value = dot
    if (operand.type === 'variable') {
      const name = names[0]!
      const variable = variables.findLast((candidate) => candidate.name === name)
      if (!variable) return fail(`undefined variable: ${name}`)
      value = variable.value
      names = names.slice(1)
      if (names.length === 0) notAFunction(operand, args, piped)
    } else if (operand.type === 'chain') {
      if (operand.of.type === 'nil') fail(`indirection through explicit nil in ${nodeText(operand)}`)
      value = operandValue(dot, operand.of)
    }
    for (const [index, name] of names.entries()) {
      const last = index === names.length - 1
      value = field(value, name, { dot, args: last ? args : [], piped: last ? piped : Nothing, nested: index > 0, operand })
    }
    return value
  }

  function field(
    receiver: Value,
    name: string,
    at: { dot: Value; args: readonly Operand[]; piped: Piped; nested: boolean; operand: Operand },
  ): Value {
    if (receiver === undefined) {
      if (missingKeyFails) fail(`nil data; no entry for key ${quote(name)}`)
      return undefined
    }
    if (receiver === null) return fail(`nil pointer evaluating interface {}.${name}`)
    const hasArguments = at.args.length > 0 || at.piped !== Nothing
    if (receiver instanceof GoStruct) {
      const method = receiver.methods.get(name)
      if (method) return invoke(name, method, at.dot, at.operand, at.args, at.piped)
      if (receiver.fields.has(name)) {
        if (hasArguments) fail(`${name} has arguments but cannot be invoked as function`)
        return receiver.fields.get(name)
      }
    } else if (isMap(receiver)) {
      if (hasArguments) fail(`${name} is not a method but has arguments`)
      if (has(receiver, name)) return receiver[name]
      return missingKeyFails ? fail(`map has no entry for key ${quote(name)}`) : undefined
    }
    return fail(
      `can't evaluate field ${name} in type ${at.nested || at.operand.type === 'field' ? 'interface {}' : typeName(receiver)}`,
    )
  }

  // Functions

  function callFunction(
    dot: Value,
    callee: Extract<Operand, { type: 'function' }>,
    command: Node,
    args: readonly Operand[],
    piped: Piped,
  ): Value {
    current = callee
    const { name } = callee
    if (name === 'and' || name === 'or') return shortCircuit(name, dot, args, piped)
    const called = functions.get(name)
    if (!called) return fail(`${quote(name)} is not a defined function`)
    return invoke(name, called, dot, command, args, piped)
  }

  /** `and` and `or` evaluate their arguments lazily, so they cannot be ordinary functions. */
  function shortCircuit(name: 'and' | 'or', dot: Value, args: readonly Operand[], piped: Piped): Value {
    const given = args.length + (piped === Nothing ? 0 : 1)
    if (given === 0) fail(`wrong number of args for ${name}: want at least 1 got 0`)
    let value: Value
    for (const argument of args) {
      value = operandValue(dot, argument)
      if (truth(value) === (name === 'or')) return value
    }
    return piped === Nothing ? value : piped
  }

  function invoke(name: string, called: TemplateFunction, dot: Value, at: Node, args: readonly Operand[], piped: Piped): Value {
    const { parameters, rest } = called
    const given = args.length + (piped === Nothing ? 0 : 1)
    if (rest !== undefined && given < parameters.length) {
      fail(`wrong number of args for ${name}: want at least ${parameters.length} got ${given}`)
    }
    if (rest === undefined && given !== parameters.length) {
      fail(`wrong number of args for ${name}: want ${parameters.length} got ${given}`)
    }
    const typeAt = (index: number): ParameterType => parameters[index] ?? rest ?? 'any'
    const values = args.map((argument, index) => argumentValue(dot, argument, typeAt(index)))
    if (piped !== Nothing) values.push(checkType(piped, typeAt(values.length)))
    try {
      // oxlint-disable-next-line capstan/no-spread-arguments -- too many arguments fail the template, as any other error of the call does
      const answer = called.call(...values)
      return typeof answer === 'string' ? limited(answer) : answer
    } catch (err) {
      current = at
      return fail(`error calling ${name}: ${err instanceof Error ? err.message : String(err)}`)
    }
  }

  function argumentValue(dot: Value, argument: Operand, type: ParameterType): Value {
    if (argument.type === 'nil') {
      current = argument
      const zero = zeroOf(type)
      return zero !== undefined ? zero : fail(`cannot assign nil to ${GoTypes[type]}`)
    }
    const value = operandValue(dot, argument)
    if (argument.type !== 'constant') return checkType(value, type)
    // Untyped constants take the parameter's type where possible.
    if (type === 'float64' && typeof value === 'bigint') return Number(value)
    if (type === 'int' && typeof value === 'number' && Number.isInteger(value)) return BigInt(value)
    if (type !== 'any' && typeof value !== JavaScriptTypes[type]) {
      const wanted = type === 'float64' ? 'float' : type === 'int' ? 'integer' : type
      if (type === 'list' || type === 'map') return fail(`can't handle ${nodeText(argument)} for arg of type ${GoTypes[type]}`)
      return fail(`expected ${wanted}; found ${nodeText(argument)}`)
    }
    return value
  }

  function checkType(value: Value, type: ParameterType): Value {
    if (value === undefined) {
      const zero = zeroOf(type)
      return zero !== undefined ? zero : fail(`invalid value; expected ${GoTypes[type]}`)
    }
    if (value === null) {
      return type === 'any' ? null : fail(`wrong type for value; expected ${GoTypes[type]}; got interface {}`)
    }
    const fits =
      type === 'any' ||
      (type === 'list' ? Array.isArray(value) : type === 'map' ? isMap(value) : typeof value === JavaScriptTypes[type])
    return fits ? value : fail(`wrong type for value; expected ${GoTypes[type]}; got ${typeName(value)}`)
  }

  call(name, data, { type: 'dot', pos: 0 })
  return out
}

/** Value passed for a missing value where the parameter's type allows nil. */
const zeroOf = (type: ParameterType): Value => (type === 'any' ? null : type === 'list' ? [] : type === 'map' ? {} : undefined)

const GoTypes: Readonly<Record<ParameterType, string>> = {
  any: 'interface {}',
  string: 'string',
  int: 'int',
  float64: 'float64',
  bool: 'bool',
  list: '[]interface {}',
  map: 'map[string]interface {}',
}

const JavaScriptTypes: Readonly<Record<ParameterType, string>> = {
  any: 'any',
  string: 'string',
  int: 'bigint',
  float64: 'number',
  bool: 'boolean',
  list: 'object',
  map: 'object',
}
