import { z } from 'zod'
import { isObject } from '../../jsonrpc/envelope.ts'

/** The snake_case name of a field. The model is in camelCase; requests may use either spelling (spec/json-rpc.md#field-names). */
export function snakeOf(camel: string): string {
  return camel.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/**
 * Schema of an object whose keys may be in either spelling; camelCase takes precedence. Unknown keys and nulls are dropped.
 * @param also further names of a key, in order of precedence
 */
export function wireObject<Shape extends z.core.$ZodLooseShape>(
  shape: Shape,
  also: Readonly<Record<string, string[]>> = {},
) {
  const spellings = Object.keys(shape).map((key): [string, string[]] => {
    const names = [key, snakeOf(key), ...(also[key] ?? [])]
    return [key, [...new Set(names)]]
  })
  return z.preprocess((given) => readEither(given, spellings), z.object(shape))
}

function readEither(given: unknown, spellings: [string, string[]][]): unknown {
  if (!isObject(given)) return given
  const read: Record<string, unknown> = {}
  for (const [key, names] of spellings) {
    for (const name of names) {
      const value = Object.hasOwn(given, name) ? given[name] : undefined
      if (value === undefined || value === null) continue
      read[key] = value
      break
    }
  }
  return read
}
