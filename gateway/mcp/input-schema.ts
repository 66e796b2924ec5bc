import { isObject } from '@parley/wire/jsonrpc/envelope'
import { cleanText, clipped, hasUnsafeCharacters } from '@parley/wire/model/clean-text'
import type { JsonObject, JsonValue } from '@parley/wire/model/task'

/** Schemas of foreign agents beyond these limits are replaced by the schema for texts. */
const schemaMaxChars = 32 * 1024
const schemaMaxDepth = 24
const descriptionMaxChars = 2048

/** Annotations for people, which are cleaned. Other strings with unsafe characters make the schema unusable. */
const annotations = new Set(['title', 'description', '$comment'])

export interface InputShape {
  schema: JsonObject & { type: 'object' }
  /** Whether the arguments are the data of the skill instead of a text. */
  isStructured: boolean
}

const file: JsonObject = {
  type: 'object',
  description: 'A file: either its content in base64, or its address',
  properties: {
    name: { type: 'string', description: 'The file name' },
    mime_type: { type: 'string', description: 'The media type, for example text/csv' },
    data: { type: 'string', description: 'The content in base64' },
    text: { type: 'string', description: 'The content of a text file' },
    uri: {
      type: 'string',
      description: 'An http or https address, or the address of an earlier result (parley://tasks/…)',
    },
  },
  additionalProperties: false,
}

const continuation: JsonObject = {
  context_id: {
    type: 'string',
    description: 'Continues the conversation of an earlier result with this context_id',
  },
  task_id: {
    type: 'string',
    description: 'Answers the question of a paused task: the text is the answer',
  },
  payment_session: {
    type: 'string',
    description: 'Pays for the request: the payment_session of an earlier result, after the user has paid',
  },
}

export const textSchema: InputShape['schema'] = {
  type: 'object',
  properties: {
    text: { type: 'string', description: 'The request to the agent, with all facts that it needs' },
    files: { type: 'array', items: file, maxItems: 16, description: 'Files for the agent' },
    ...continuation,
  },
  required: ['text'],
  additionalProperties: false,
}

/** The fields that continue a conversation or send files, in addition to the data of a skill. */
const additions: JsonObject = {
  parley_files: { type: 'array', items: file, maxItems: 16, description: 'Files for the agent' },
  parley_context_id: continuation['context_id'] ?? {},
  parley_payment_session: continuation['payment_session'] ?? {},
}

/**
 * Returns the input schema of a skill's tool: the schema that the agent publishes, with fields for files and the
 * conversation, or the schema for texts and files.
 */
export function inputShapeOf(published: unknown): InputShape {
  const schema = isObject(published) ? cleanSchema(published as JsonObject) : undefined
  if (schema === undefined || !isObjectSchema(schema)) return { schema: textSchema, isStructured: false }
  const properties = isObject(schema['properties']) ? (schema['properties'] as JsonObject) : {}
  return {
    schema: { ...schema, type: 'object', properties: { ...additions, ...properties } },
    isStructured: true,
  }
}

const isObjectSchema = (schema: JsonObject): boolean =>
  schema['type'] === 'object' || (schema['type'] === undefined && isObject(schema['properties']))

/** Returns undefined if the schema is too large, too deep or contains unsafe characters outside annotations. */
function cleanSchema(schema: JsonObject): JsonObject | undefined {
  if (JSON.stringify(schema).length > schemaMaxChars) return undefined
  const clean = cleanNode(schema, 0)
  return isObject(clean) ? (clean as JsonObject) : undefined
}

function cleanNode(value: JsonValue, depth: number): JsonValue | undefined {
  if (depth > schemaMaxDepth) return undefined
  if (typeof value === 'string') return hasUnsafeCharacters(value) ? undefined : value
  if (Array.isArray(value)) {
    const items = value.map((item) => cleanNode(item, depth + 1))
    return items.includes(undefined) ? undefined : items.filter((item) => item !== undefined)
  }
  if (!isObject(value)) return value
  const clean: JsonObject = {}
  for (const [key, item] of Object.entries(value)) {
    // Headers that mirror arguments concern the server that publishes the schema, not the gateway.
    if (key === 'x-mcp-header') continue
    if (hasUnsafeCharacters(key)) return undefined
    const node =
      annotations.has(key) && typeof item === 'string'
        ? clipped(cleanText(item), descriptionMaxChars)
        : cleanNode(item as JsonValue, depth + 1)
    if (node === undefined) return undefined
    clean[key] = node
  }
  return clean
}
