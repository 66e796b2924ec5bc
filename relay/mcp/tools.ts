import { createHash } from 'node:crypto'
import { toolSkillOut } from '@parley/wire/codecs/parley/skills'
import { cleanLine, cleanText } from '@parley/wire/model/clean-text'
import { keptInputSchema } from '@parley/wire/model/input-schema'
import { isJsonObject } from '@parley/wire/model/json-text'
import type { JsonObject, JsonValue } from '@parley/wire/model/task'
import { z } from 'zod'

/** A tool of an MCP server, as the skill of an agent. Its texts are bounded and without control characters. */
export interface McpTool {
  /** The ID of the skill. */
  id: string
  /** The name at the server. */
  name: string
  title: string
  description: string
  inputSchema: JsonObject
  /** The server states that the tool changes nothing, or that a repeated call has no further effect. */
  isRepeatable: boolean
  /** The server states that the tool deletes or overwrites data. */
  isDestructive: boolean
}

export const toolsMax = 1000
const [nameMax, titleMax, descriptionMax] = [128, 200, 4000]
/** The maximum size of all schemas of a server. */
const schemasMaxChars = 1024 * 1024

const flag = z.boolean().optional().catch(undefined)
const text = z.string().optional().catch(undefined)
const listed = z.looseObject({
  name: z.string().min(1).max(nameMax),
  title: text,
  description: text,
  inputSchema: z.custom<JsonObject>(isJsonObject).optional().catch(undefined),
  annotations: z
    .looseObject({ title: text, readOnlyHint: flag, idempotentHint: flag, destructiveHint: flag })
    .optional()
    .catch(undefined),
  execution: z.looseObject({ taskSupport: text }).optional().catch(undefined),
})

/** A schema for a tool with a schema that is too large, nested too deeply, or loaded from elsewhere. The server checks the arguments. */
export const anyObject: JsonObject = { type: 'object' }

/**
 * Reads the tools of a server. Those without a usable name, those after the first of a name, and those after the first thousand are left
 * out.
 * @param hasLegacyTasks whether tools that require tasks of the revision 2025-11-25 are left out, because they are not supported
 */
export function readTools(list: readonly unknown[], hasLegacyTasks = false): McpTool[] {
  const tools = new Map<string, McpTool>()
  const ids = new Set<string>()
  let schemaChars = 0
  for (const item of list) {
    const tool = listed.safeParse(item).data
    if (tool === undefined || tools.has(tool.name) || tools.size >= toolsMax) continue
    if (hasLegacyTasks && tool.execution?.taskSupport === 'required') continue
    const { name, annotations } = tool
    const id = idFor(name, ids)
    ids.add(id)
    const inputSchema = usableSchema(tool.inputSchema, schemasMaxChars - schemaChars)
    schemaChars += JSON.stringify(inputSchema).length
    const title = cleanLine(tool.title ?? annotations?.title ?? '', titleMax) || wordsOf(name).join(' ') || id
    tools.set(name, {
      id,
      name,
      title,
      description: cleanText((tool.description ?? '').slice(0, descriptionMax)).trim() || title,
      inputSchema,
      isRepeatable: annotations?.readOnlyHint === true || annotations?.idempotentHint === true,
      isDestructive: annotations?.destructiveHint === true && annotations.readOnlyHint !== true,
    })
  }
  return [...tools.values()]
}

/** Returns the words of a name such as `read_text-file` or `readTextFile`, in lower case. */
export function wordsOf(name: string): string[] {
  const words = cleanText(name)
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
  return [...new Set(words.filter((word) => word.length > 1))].slice(0, 16)
}

/** The words of a tool by which a text may name it: those of its name and of its arguments. */
export function keywordsOf({ name, inputSchema }: McpTool): string[] {
  const words = [...wordsOf(name), ...Object.keys(propertiesOf(inputSchema)).flatMap(wordsOf)]
  return [...new Set(words)].slice(0, 50)
}

/** Writes the skill of a tool, as `GET /agent/skills` lists it. */
export function skillOf(tool: McpTool) {
  const { id, title: name, description, inputSchema } = tool
  const skill = { id, name, description, tags: wordsOf(tool.name), inputSchema }
  return toolSkillOut(skill, { tool, keywords: keywordsOf(tool) })
}

export function propertiesOf({ properties }: JsonObject): Record<string, JsonObject> {
  if (!isJsonObject(properties)) return {}
  return Object.fromEntries(
    Object.entries(properties).filter((entry): entry is [string, JsonObject] => isJsonObject(entry[1])),
  )
}

/** Skill IDs have fewer characters than names of tools. A hash keeps different names apart. */
function idFor(name: string, taken: ReadonlySet<string>): string {
  const id = name.replace(/[^\w.-]/g, '-')
  if (!taken.has(id)) return id
  return `${id.slice(0, 100)}-${createHash('sha256').update(name).digest('hex').slice(0, 12)}`
}

function usableSchema(schema: JsonObject | undefined, maxChars: number): JsonObject {
  const kept = schema && keptInputSchema({ ...schema, type: schema['type'] ?? 'object' })
  const clean = kept && cleaned(kept)
  return isJsonObject(clean) && JSON.stringify(clean).length <= maxChars ? clean : anyObject
}

function cleaned(value: JsonValue): JsonValue {
  if (typeof value === 'string') return cleanText(value)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(cleaned)
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, cleaned(one)]))
}
