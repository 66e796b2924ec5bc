import { z } from 'zod'
import { isObject } from '../../jsonrpc/envelope.ts'
import { type Timestamp, timestampOf } from '../../model/timestamp.ts'
import { snakeOf } from '../parley/spelling.ts'
import { wireForms } from '../wire-form.ts'

/** Readers of ProtoJSON, the JSON form of protocol buffers. https://protobuf.dev/programming-guides/json */

/**
 * Creates the schema of a message of the protocol. A field may be spelled in camelCase or in snake_case, but not in both. Null
 * means that the field is absent. Drops unknown fields.
 */
export function protoObject<Shape extends z.core.$ZodLooseShape>(shape: Shape) {
  const spellings = Object.keys(shape).map((camel) => [camel, snakeOf(camel)] as const)
  return z.preprocess((given, context) => {
    if (!isObject(given)) return given
    const read: Record<string, unknown> = {}
    for (const [camel, snake] of spellings) {
      const value = ownField(given, camel)
      if (value !== undefined) read[camel] = value
      if (snake === camel) continue
      const other = ownField(given, snake)
      if (other === undefined) continue
      if (value !== undefined)
        context.addIssue({ code: 'custom', path: [snake], message: `must not be combined with ${camel}` })
      read[camel] = other
    }
    return read
  }, z.object(shape))
}

/** Returns a field of a message in either spelling; undefined if it is absent or the JSON is not an object. */
export function fieldOf(json: unknown, camel: string): unknown {
  return isObject(json) ? (ownField(json, camel) ?? ownField(json, snakeOf(camel))) : undefined
}

function ownField(given: Record<string, unknown>, name: string): unknown {
  return Object.hasOwn(given, name) ? (given[name] ?? undefined) : undefined
}

/** A string. Its default, the empty string, means that the field is absent. */
export function optionalText(maxChars: number) {
  return z
    .string()
    .max(maxChars)
    .transform((text) => (text === '' ? undefined : text))
    .optional()
}

const int32Text = /^-?\d{1,10}(\.0+)?$/
const int32Max = 2_147_483_647

/** An int32, as a number or as a decimal string. */
export function int32(min: number, max = int32Max) {
  return z.preprocess(
    (given) => (typeof given === 'string' && int32Text.test(given) ? Number(given) : given),
    z.int().min(min).max(max),
  )
}

/** An enum, by the name or the number of a value. The first value means that the field is absent. */
export function enumOf<Value>(values: readonly (readonly [name: string, value: Value | undefined])[]) {
  const byName = new Map(values)
  const form = { schema: { enum: values.slice(1).map(([name]) => name) } }
  return z
    .unknown()
    .register(wireForms, form)
    .transform((given, context): Value | undefined => {
      const name = typeof given === 'number' ? values[given]?.[0] : given
      if (typeof name === 'string' && byName.has(name)) return byName.get(name)
      const known = values.slice(1).map(([one]) => one)
      context.addIssue({ code: 'custom', message: `must be one of ${known.join(', ')}` })
      return z.NEVER
    })
}

const base64Text = /^[A-Za-z0-9+/]*={0,2}$/
const base64UrlText = /^[\w+/-]*$/

/** Bytes in base64 or in base64url, with or without padding. The result is base64 with padding. */
export const bytes = z.string().transform((given, context): string => {
  if (given.length % 4 === 0 && base64Text.test(given)) return given
  const text = given.length % 4 === 0 ? given.replace(/={1,2}$/, '') : given
  if (text.length % 4 !== 1 && base64UrlText.test(text))
    return text
      .replaceAll('-', '+')
      .replaceAll('_', '/')
      .padEnd(Math.ceil(text.length / 4) * 4, '=')
  context.addIssue({ code: 'custom', message: 'must be base64' })
  return z.NEVER
})

const rfc3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.(\d{1,9}))?(?:Z|[+-]\d{2}:\d{2})$/i

/** A time of RFC 3339 with up to nine decimals, of which six are kept. A time before 1970 is read as the start of 1970. */
export const time = z
  .string()
  .register(wireForms, { schema: { type: 'string', format: 'date-time' } })
  .transform((given, context): Timestamp => {
    const fraction = rfc3339.exec(given)?.[1] ?? ''
    const seconds = Math.floor(Date.parse(given) / 1000)
    if (rfc3339.test(given) && Number.isSafeInteger(seconds))
      return timestampOf(Math.max(0, seconds * 1_000_000 + Number(fraction.padEnd(6, '0').slice(0, 6))))
    context.addIssue({ code: 'custom', message: 'must be a time like "2026-01-31T12:00:00.000Z"' })
    return z.NEVER
  })

/** Writes a time in UTC with milliseconds, which is cut rather than rounded. */
export function timeOut(timestamp: Timestamp): string {
  return timestamp.endsWith('+00:00') && timestamp.length === 32
    ? `${timestamp.slice(0, 23)}Z`
    : new Date(timestamp).toISOString()
}
