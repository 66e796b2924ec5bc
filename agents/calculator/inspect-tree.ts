import type { MathNode } from 'mathjs'
import { refusedFunctions } from './mathjs.ts'

interface Looked {
  type: string
  name?: unknown
  fn?: { type: string }
  /** Keys of an object literal. */
  properties?: object
}

/**
 * First line of defence: checks the syntax tree of an expression before it runs. As a second line, forbidden functions
 * are replaced in the language itself.
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
    // Methods of values are internals of the library, not part of the language.
    if (type === 'FunctionNode' && fn?.type !== 'SymbolNode') {
      throw refusal('methods of values are not available here')
    }
  })
}

/** Whether an object literal contains `__proto__`, which would change the prototype instead of adding a key. */
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
