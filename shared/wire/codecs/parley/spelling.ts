import { z } from 'zod'
import { isObject } from '../../jsonrpc/envelope.ts'
import { wireForms } from '../wire-form.ts'

/** Returns a field's snake_case name. The model uses camelCase; requests may use both (spec/json-rpc.md#field-names). */
export function snakeOf(camel: string): string {
  return camel.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/**
 * Creates the schema of an object with keys in either spelling; camelCase takes precedence. Drops unknown keys and nulls.
 * @param also additional names of a key, in order of precedence
 */
export function wireObject<Shape extends z.core.$ZodLooseShape>(
  shape: Shape,
  also: Readonly<Record<string, string[]>> = {},
) {
  const names = Object.fromEntries(Object.keys(shape).map((key) => [key, snakeOf(key)]))
  return spelledObject(z.object(shape).register(wireForms, { names }), also)
}

/** Like `wireObject`, for protocols that spell their fields in camelCase. */
export function camelObject<Shape extends z.core.$ZodLooseShape>(
  shape: Shape,
  also: Readonly<Record<string, string[]>> = {},
) {
  return spelledObject(z.object(shape), also)
}

function spelledObject<Shape extends z.core.$ZodLooseShape>(
  object: z.ZodObject<Shape>,
  also: Readonly<Record<string, string[]>>,
) {
  const spellings = Object.keys(object.shape).map((key): [string, string[]] => {
    const names = [key, snakeOf(key), ...(also[key] ?? [])]
    return [key, [...new Set(names)]]
  })
  return z.preprocess((given) => readEither(given, spellings), object)
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
