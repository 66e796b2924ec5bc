import { z } from 'zod'

const document = z.looseObject({
  paths: z.record(z.string(), z.record(z.string(), z.looseObject({ responses: z.unknown() }))),
  components: z.looseObject({ schemas: z.unknown(), responses: z.unknown() }),
})

/**
 * Returns the document with closed objects in responses, so that a field that is not described is a failure. The served document
 * leaves objects open for fields of later versions.
 */
export function strictDocument(json: unknown): object {
  const { paths, components, ...rest } = document.parse(json)
  const operations = Object.entries(paths).map(([path, item]) => [
    path,
    mapped(item, ({ responses, ...operation }) => ({ ...operation, responses: closed(responses) })),
  ])
  const { schemas, responses, ...others } = components
  return {
    ...rest,
    paths: Object.fromEntries(operations),
    components: { ...others, schemas: closed(schemas), responses: closed(responses) },
  }
}

function mapped<T, R>(object: Record<string, T>, change: (value: T) => R): Record<string, R> {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, change(value)]))
}

/** Closes each object schema that lists its fields and does not allow others. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed)
  if (typeof schema !== 'object' || schema === null) return schema
  const within = mapped({ ...schema }, closed)
  const isOpen = within['additionalProperties'] === undefined
  return within['type'] === 'object' && 'properties' in within && isOpen
    ? { ...within, additionalProperties: false }
    : within
}
