import type { MathNode } from 'mathjs'
import { refusedFunctions } from './mathjs.ts'

interface Looked {
  type: string
  name?: unknown
  fn?: { type: string }
  /** Of an object literal. */
  properties?: object
}

/**
 * The first wall: what an expression may contain, looked at before any of it runs. The second is that the refused
 * functions are replaced in the language itself.
 */
export function inspectTree(root: MathNode): void {
  root.traverse((node) => {
    const { type, name, fn, properties } = node as unknown as Looked
    if (
      (type === 'SymbolNode' || type === 'FunctionAssignmentNode' || type === 'AssignmentNode') &&
      refused(name)
    ) {
      throw refusal(`\`${String(name)}\` is not available here`)
    }
    if (properties && oddKeys(properties)) throw refusal('such keys of an object are not available here')
    // Methods of values are the library's inside, not the language.
    if (type === 'FunctionNode' && fn?.type !== 'SymbolNode') {
      throw refusal('methods of values are not available here')
    }
  })
}

/** `__proto__` as a key does not become one: it changes what the object is. */
function oddKeys(properties: object): boolean {
  return Object.getPrototypeOf(properties) !== Object.prototype || Object.keys(properties).some(refused)
}

function refused(name: unknown): boolean {
  return (
    typeof name === 'string' &&
    (refusedFunctions.has(name) || name.startsWith('__') || name === 'constructor')
  )
}

function refusal(text: string): Error {
  return Object.assign(new Error(text), { fault: 'refused' })
}
