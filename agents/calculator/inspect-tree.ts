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
    for (const key of Object.keys(properties ?? {})) {
      if (key.startsWith('__') || key === 'constructor') throw refusal(`\`${key}\` is not available here`)
    }
    // Methods of values are the library's inside, not the language.
    if (type === 'FunctionNode' && fn?.type !== 'SymbolNode') {
      throw refusal('methods of values are not available here')
    }
  })
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
