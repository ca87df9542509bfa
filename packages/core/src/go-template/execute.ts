/** Executes a parsed template over data. Upstream: Go's text/template/exec.go, for data as encoding/json decodes it. */
import { limited, LargestText, text } from './format.ts'
import { quotedGo } from '@capstan/kube'
import type { Branch, Command, Node, Operand, Pipe, Statement } from './node.ts'
import { nodeText } from './node.ts'
import type { Definitions } from './parser.ts'
import type { ParameterType, TemplateFunction, Value } from './value.ts'
import { byteLength, GoStruct, has, isMap, sortedKeys, truth, typeName } from './value.ts'

/** A parsed template with the functions and settings for its execution. */
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
/** Maximum number of statements and loop iterations of one execution. */
const MaxSteps = 1_000_000

/** Marks that no value is piped to a command. */
const NoPipedValue = Symbol('nothing')
type Piped = Value | typeof NoPipedValue

/** Where execution continues after a statement: at the next statement, after the enclosing loop, or at its next iteration. */
type Flow = 'next' | 'break' | 'continue'

interface Variable {
  readonly name: string
  value: Value
}

/**
 * Returns the output of a template for `data`.
 * @throws Error in Go's form: `template: name:1:2: executing "name" at <.x>: map has no entry for key "x"`
 */
export const execute = (execution: Execution, data: Value): string => new Executor(execution, data).output()

/** One execution: the output so far, the variables in scope, and the position of errors. */
class Executor {
  readonly #execution: Execution
  readonly #data: Value
  #out = ''
  /** Size of the output in bytes. */
  #bytes = 0
  #steps = 0
  #templateName: string
  #depth = 0
  #variables: Variable[] = []
  /** The node that error messages refer to. */
  #current: Node | undefined

  constructor(execution: Execution, data: Value) {
    this.#execution = execution
    this.#data = data
    this.#templateName = execution.name
  }

  output(): string {
    this.#call(this.#execution.name, this.#data, { type: 'dot', pos: 0 })
    return this.#out
  }

  #fail(message: string): never {
    const { name, source } = this.#execution
    if (!this.#current) throw new Error(`template: ${name}: ${message}`)
    const precedingText = source.slice(0, this.#current.pos)
    const line = precedingText.split('\n').length
    const column = byteLength(precedingText.slice(precedingText.lastIndexOf('\n') + 1))
    const context = `${name}:${line}:${column}: executing ${quotedGo(this.#templateName)} at <${nodeText(this.#current)}>`
    throw new Error(`template: ${context}: ${message}`)
  }

  #write(part: string): void {
    this.#out += part
    this.#bytes += byteLength(part)
    if (this.#bytes > LargestText) this.#fail(`output is larger than ${LargestText} bytes`)
  }

  #step(): void {
    if (++this.#steps > MaxSteps) this.#fail(`execution takes more than ${MaxSteps} steps`)
  }

  // Statements

  #walk(statements: readonly Statement[], dot: Value): Flow {
    for (const statement of statements) {
      this.#step()
      const flow = this.#run(statement, dot)
      if (flow !== 'next') return flow
    }
    return 'next'
  }

  #run(statement: Statement, dot: Value): Flow {
    this.#current = statement
    switch (statement.type) {
      case 'text':
        this.#write(statement.text)
        return 'next'
      case 'action': {
        const value = this.#pipeValue(dot, statement.pipe)
        if (statement.pipe.variables.length > 0) return 'next'
        this.#current = statement
        this.#write(value == null ? '<no value>' : text(value))
        return 'next'
      }
      case 'if':
      case 'with': {
        const scope = this.#variables.length
        const value = this.#pipeValue(dot, statement.pipe)
        const flow = truth(value)
          ? this.#walk(statement.body, statement.type === 'with' ? value : dot)
          : this.#walk(statement.otherwise, dot)
        this.#variables.length = scope
        return flow
      }
      case 'range':
        return this.#range(statement, dot)
      case 'template':
        this.#call(statement.name, statement.pipe === undefined ? undefined : this.#pipeValue(dot, statement.pipe), statement)
        return 'next'
      case 'break':
      case 'continue':
        return statement.type
    }
  }

  #range(statement: Branch, dot: Value): Flow {
    const scope = this.#variables.length
    const { pipe } = statement
    const iterated = this.#pipeValue(dot, pipe)
    const entries = this.#entriesOf(iterated, pipe)
    const inner = this.#variables.length
    let flow: Flow = 'next'
    for (const [key, item] of entries) {
      this.#step()
      // A single variable gets the element. Of two variables, the first gets the key.
      const values = pipe.variables.length === 1 ? [item] : [key, item]
      for (const [index, name] of pipe.variables.entries()) {
        if (pipe.assigns) this.#assign(name, values[index])
        // Declared variables are the last ones of `#variables`, in the order of their declaration.
        else this.#variables[inner - pipe.variables.length + index]!.value = values[index]
      }
      flow = this.#walk(statement.body, item)
      this.#variables.length = inner
      if (flow === 'break') break
    }
    const result = entries.length === 0 ? this.#walk(statement.otherwise, dot) : 'next'
    this.#variables.length = scope
    return result
  }

  #entriesOf(iterated: Value, pipe: Pipe): [Value, Value][] {
    if (iterated === null || iterated === undefined) return []
    if (Array.isArray(iterated)) return iterated.map((item, index) => [BigInt(index), item])
    if (typeof iterated === 'bigint') {
      if (pipe.variables.length > 1) this.#fail(`can't use ${iterated} to iterate over more than one variable`)
      if (iterated > MaxSteps) this.#fail(`execution takes more than ${MaxSteps} steps`)
      return Array.from({ length: Math.max(0, Number(iterated)) }, (_, index) => [BigInt(index), BigInt(index)])
    }
    if (isMap(iterated)) return sortedKeys(iterated).map((key) => [key, iterated[key]])
    return this.#fail(`range can't iterate over ${text(iterated)}`)
  }

  #call(templateName: string, data: Value, node: Node): void {
    this.#current = node
    const statements = this.#execution.definitions.get(templateName)
    if (!statements) return this.#fail(`template ${quotedGo(templateName)} not defined`)
    if (this.#depth === DeepestCall) this.#fail(`exceeded maximum template depth (${DeepestCall})`)
    const outer = { variables: this.#variables, templateName: this.#templateName }
    this.#depth++
    this.#variables = [{ name: '$', value: data }]
    this.#templateName = templateName
    this.#walk(statements, data)
    this.#depth--
    this.#variables = outer.variables
    this.#templateName = outer.templateName
  }

  // Values

  #pipeValue(dot: Value, pipe: Pipe): Value {
    this.#current = pipe
    let value: Piped = NoPipedValue
    // A nil result of a command becomes undefined, and is piped to the next command.
    for (const command of pipe.commands) value = this.#commandValue(dot, command, value) ?? undefined
    const result = value === NoPipedValue ? undefined : value
    for (const variable of pipe.variables) {
      if (pipe.assigns) this.#assign(variable, result)
      else this.#variables.push({ name: variable, value: result })
    }
    return result
  }

  #assign(name: string, value: Value): void {
    const variable = this.#variables.findLast((candidate) => candidate.name === name)
    if (!variable) return this.#fail(`undefined variable: ${name}`)
    variable.value = value
  }

  #commandValue(dot: Value, command: Command, piped: Piped): Value {
    const [first, ...args] = command.operands
    switch (first.type) {
      case 'field':
      case 'variable':
      case 'chain':
        return this.#path(dot, first, args, piped)
      case 'function':
        return this.#callFunction(dot, first, command, args, piped)
      case 'pipe':
        this.#rejectArguments(first, args, piped)
        return this.#pipeValue(dot, first)
      case 'nil':
      case 'dot':
      case 'constant':
        this.#current = first
        this.#rejectArguments(first, args, piped)
        if (first.type === 'nil') this.#fail('nil is not a command')
        return this.#operandValue(dot, first)
    }
  }

  /** Fails if an operand that is not a function has arguments. */
  #rejectArguments(first: Operand, args: readonly Operand[], piped: Piped): void {
    if (args.length > 0 || piped !== NoPipedValue) {
      this.#current = first
      this.#fail(`can't give argument to non-function ${nodeText(first)}`)
    }
  }

  /** Evaluates an operand that has no arguments. */
  #operandValue(dot: Value, operand: Operand): Value {
    this.#current = operand
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
        return this.#path(dot, operand, [], NoPipedValue)
      case 'function':
        return this.#callFunction(dot, operand, operand, [], NoPipedValue)
      case 'pipe':
        return this.#pipeValue(dot, operand)
    }
  }

  /** Resolves a field chain. Only the last element may be a method with arguments. */
  #path(dot: Value, operand: Extract<Operand, { names: readonly string[] }>, args: readonly Operand[], piped: Piped): Value {
    this.#current = operand
    let names = operand.names
    let value = dot
    if (operand.type === 'variable') {
      const name = names[0]!
      const variable = this.#variables.findLast((candidate) => candidate.name === name)
      if (!variable) return this.#fail(`undefined variable: ${name}`)
      value = variable.value
      names = names.slice(1)
      if (names.length === 0) this.#rejectArguments(operand, args, piped)
    } else if (operand.type === 'chain') {
      if (operand.of.type === 'nil') this.#fail(`indirection through explicit nil in ${nodeText(operand)}`)
      value = this.#operandValue(dot, operand.of)
    }
    for (const [index, name] of names.entries()) {
      const isLast = index === names.length - 1
      value = this.#field(value, name, {
        dot,
        args: isLast ? args : [],
        piped: isLast ? piped : NoPipedValue,
        nested: index > 0,
        operand,
      })
    }
    return value
  }

  #field(
    receiver: Value,
    name: string,
    access: { dot: Value; args: readonly Operand[]; piped: Piped; nested: boolean; operand: Operand },
  ): Value {
    if (receiver === undefined) {
      if (this.#execution.missingKeyFails) this.#fail(`nil data; no entry for key ${quotedGo(name)}`)
      return undefined
    }
    if (receiver === null) return this.#fail(`nil pointer evaluating interface {}.${name}`)
    const hasArguments = access.args.length > 0 || access.piped !== NoPipedValue
    if (receiver instanceof GoStruct) {
      const method = receiver.methods.get(name)
      if (method) return this.#invoke(name, method, access.dot, access.operand, access.args, access.piped)
    } else if (isMap(receiver)) {
      if (hasArguments) this.#fail(`${name} is not a method but has arguments`)
      if (has(receiver, name)) return receiver[name]
      return this.#execution.missingKeyFails ? this.#fail(`map has no entry for key ${quotedGo(name)}`) : undefined
    }
    return this.#fail(
      `can't evaluate field ${name} in type ${access.nested || access.operand.type === 'field' ? 'interface {}' : typeName(receiver)}`,
    )
  }

  // Functions

  #callFunction(
    dot: Value,
    callee: Extract<Operand, { type: 'function' }>,
    command: Node,
    args: readonly Operand[],
    piped: Piped,
  ): Value {
    this.#current = callee
    const { name } = callee
    if (name === 'and' || name === 'or') return this.#shortCircuit(name, dot, args, piped)
    const templateFunction = this.#execution.functions.get(name)
    if (!templateFunction) return this.#fail(`${quotedGo(name)} is not a defined function`)
    return this.#invoke(name, templateFunction, dot, command, args, piped)
  }

  /** `and` and `or` evaluate their arguments lazily, so they cannot be ordinary functions. */
  #shortCircuit(name: 'and' | 'or', dot: Value, args: readonly Operand[], piped: Piped): Value {
    const argumentCount = args.length + (piped === NoPipedValue ? 0 : 1)
    if (argumentCount === 0) this.#fail(`wrong number of args for ${name}: want at least 1 got 0`)
    let value: Value
    for (const argument of args) {
      value = this.#operandValue(dot, argument)
      if (truth(value) === (name === 'or')) return value
    }
    return piped === NoPipedValue ? value : piped
  }

  #invoke(
    name: string,
    templateFunction: TemplateFunction,
    dot: Value,
    node: Node,
    args: readonly Operand[],
    piped: Piped,
  ): Value {
    const { parameters, rest } = templateFunction
    const argumentCount = args.length + (piped === NoPipedValue ? 0 : 1)
    if (rest !== undefined && argumentCount < parameters.length) {
      this.#fail(`wrong number of args for ${name}: want at least ${parameters.length} got ${argumentCount}`)
    }
    if (rest === undefined && argumentCount !== parameters.length) {
      this.#fail(`wrong number of args for ${name}: want ${parameters.length} got ${argumentCount}`)
    }
    const typeAt = (index: number): ParameterType => parameters[index] ?? rest ?? 'any'
    const values = args.map((argument, index) => this.#argumentValue(dot, argument, typeAt(index)))
    if (piped !== NoPipedValue) values.push(this.#checkType(piped, typeAt(values.length)))
    try {
      // oxlint-disable-next-line capstan/no-spread-arguments -- the error of too many arguments is handled below, as any other error of the call
      const result = templateFunction.call(...values)
      return typeof result === 'string' ? limited(result) : result
    } catch (err) {
      this.#current = node
      return this.#fail(`error calling ${name}: ${err instanceof Error ? err.message : String(err)}`)
    }
  }

  #argumentValue(dot: Value, argument: Operand, type: ParameterType): Value {
    if (argument.type === 'nil') {
      this.#current = argument
      const zero = zeroOf(type)
      return zero !== undefined ? zero : this.#fail(`cannot assign nil to ${GoTypes[type]}`)
    }
    const value = this.#operandValue(dot, argument)
    if (argument.type !== 'constant') return this.#checkType(value, type)
    // Untyped constants take the parameter's type where possible.
    if (type === 'float64' && typeof value === 'bigint') return Number(value)
    if (type === 'int' && typeof value === 'number' && Number.isInteger(value)) return BigInt(value)
    if (type !== 'any' && typeof value !== JavaScriptTypes[type]) {
      const expectedType = type === 'float64' ? 'float' : type === 'int' ? 'integer' : type
      if (type === 'list' || type === 'map')
        return this.#fail(`can't handle ${nodeText(argument)} for arg of type ${GoTypes[type]}`)
      return this.#fail(`expected ${expectedType}; found ${nodeText(argument)}`)
    }
    return value
  }

  #checkType(value: Value, type: ParameterType): Value {
    if (value === undefined) {
      const zero = zeroOf(type)
      return zero !== undefined ? zero : this.#fail(`invalid value; expected ${GoTypes[type]}`)
    }
    if (value === null) {
      return type === 'any' ? null : this.#fail(`wrong type for value; expected ${GoTypes[type]}; got interface {}`)
    }
    const fits =
      type === 'any' ||
      (type === 'list' ? Array.isArray(value) : type === 'map' ? isMap(value) : typeof value === JavaScriptTypes[type])
    return fits ? value : this.#fail(`wrong type for value; expected ${GoTypes[type]}; got ${typeName(value)}`)
  }
}

/** Value passed for `nil` or a missing value; `undefined` if the parameter's type does not allow nil. */
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
