import { isUtf8 } from 'node:buffer'
import { ParleyError } from '../errors.ts'

/** JSON nested more deeply is rejected, so that later code can process values recursively. */
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
    const text =
      bytes instanceof Buffer ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    return JSON.parse(text.toString('utf8'))
  } catch {
    throw new ParleyError('ParseError', { message: 'Body is not valid JSON' })
  }
}

/**
 * Rejects values that are nested too deeply, and keys through which JSON could change a prototype.
 * @param depth the number of levels above the value, which bounds the recursion
 * @throws ParleyError InvalidRequest
 */
export function refuseHostile(value: unknown, depth = 0): void {
  if (!isTree(value)) return
  if (depth === maxDepth) throw hostile(`JSON is nested deeper than ${maxDepth} levels`)
  if (!Array.isArray(value)) refuseKeys(value)
  // In V8, `for … in` over parsed JSON is deoptimized and compiled again and again.
  for (const child of Array.isArray(value) ? value : Object.values(value)) refuseHostile(child, depth + 1)
}

/** An object or an array. */
function isTree(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

/** Rejects keys through which JSON could change a prototype. */
function refuseKeys(node: Record<string, unknown>): void {
  if (Object.hasOwn(node, '__proto__')) throw hostile('Key __proto__ is not allowed')
  if (!Object.hasOwn(node, 'constructor')) return
  const value = node['constructor']
  if (isTree(value) && Object.hasOwn(value, 'prototype')) {
    throw hostile('Key constructor.prototype is not allowed')
  }
}

const hostile = (message: string) => new ParleyError('InvalidRequest', { message })
