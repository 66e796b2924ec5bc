import { isUtf8 } from 'node:buffer'
import { ParleyError } from '../errors.ts'

/** Deeper JSON than this is refused: everything behind may walk a value without fear for the stack. */
export const maxDepth = 100

/** @throws ParleyError ParseError when the bytes are not UTF-8 or not JSON; InvalidRequest for hostile keys and nesting. */
export function parseJson(bytes: Uint8Array): unknown {
  const value = decode(bytes)
  refuseHostile(value)
  return value
}

function decode(bytes: Uint8Array): unknown {
  if (bytes.byteLength === 0) throw new ParleyError('ParseError', { message: 'Body is empty' })
  if (!isUtf8(bytes)) throw new ParleyError('ParseError', { message: 'Body is not valid UTF-8' })
  try {
    return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'))
  } catch {
    throw new ParleyError('ParseError', { message: 'Body is not valid JSON' })
  }
}

/** Walks without recursion: a hundred thousand levels are refused, not a reason to fall. */
function refuseHostile(root: unknown): void {
  if (typeof root !== 'object' || root === null) return
  const open: object[] = [root]
  const depths: number[] = [1]
  while (open.length > 0) {
    const node = open.pop() as Record<string, unknown>
    const depth = depths.pop() as number
    if (depth > maxDepth) throw hostile(`JSON is nested deeper than ${maxDepth} levels`)
    if (!Array.isArray(node)) refuseKeys(node)
    for (const key in node) {
      const child = node[key]
      if (typeof child !== 'object' || child === null) continue
      open.push(child)
      depths.push(depth + 1)
    }
  }
}

/** Keys by which JSON could reach the prototype of objects. */
function refuseKeys(node: Record<string, unknown>): void {
  if (Object.hasOwn(node, '__proto__')) throw hostile('Key __proto__ is not allowed')
  if (!Object.hasOwn(node, 'constructor')) return
  const value = node['constructor']
  if (typeof value === 'object' && value !== null && Object.hasOwn(value, 'prototype')) {
    throw hostile('Key constructor.prototype is not allowed')
  }
}

const hostile = (message: string) => new ParleyError('InvalidRequest', { message })
