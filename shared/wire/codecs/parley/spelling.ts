import { z } from 'zod'

/**
 * camelCase ⇄ snake_case: both are accepted in (spec/json-rpc.md#field-names). Inside there
 * is camelCase alone; `wire-out.ts` writes the wire's spelling.
 */
export function snakeOf(camel: string): string {
  return camel.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/**
 * An object of the wire: every key of the shape is read in either spelling, camelCase first; other keys are dropped.
 * `also` names further spellings of a key, first come first taken.
 */
export function wireObject<Shape extends z.core.$ZodLooseShape>(
  shape: Shape,
  also: Partial<Record<keyof Shape & string, string[]>> = {},
) {
  const spellings = Object.keys(shape).map((key): [string, string[]] => {
    const names = [key, snakeOf(key), ...(also[key as keyof Shape & string] ?? [])]
    return [key, [...new Set(names)]]
  })
  return z.preprocess((given) => readEither(given, spellings), z.object(shape))
}

function readEither(given: unknown, spellings: [string, string[]][]): unknown {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return given
  const read: Record<string, unknown> = {}
  for (const [key, names] of spellings) {
    for (const name of names) {
      const value = Object.hasOwn(given, name) ? (given as Record<string, unknown>)[name] : undefined
      if (value === undefined || value === null) continue
      read[key] = value
      break
    }
  }
  return read
}
