import { negotiate } from '@parley/negotiation/score/negotiate'
import { defaultWeights } from '@parley/negotiation/score/weights'
import type { JsonObject } from '@parley/wire/model/task'
import { argumentsFor, requiredOf } from './arguments.ts'
import { keywordsOf, type McpTool, wordsOf } from './tools.ts'

/** How much better the best tool has to match the text than the second. */
const leadMin = 1.15

/**
 * Returns the tool for a message: the one that the message names by its skill or at the beginning of its text, the only one that the data
 * fits, or the one that matches the text best. Tools that delete data are not chosen by words.
 */
export function chooseTool(
  tools: readonly McpTool[],
  { skillId, data, text }: { skillId: string | undefined; data: JsonObject; text: string },
): { tool: McpTool; text: string } | undefined {
  const named = tools.find(({ id }) => id === skillId)
  if (named !== undefined) return { tool: named, text }
  const [, word = '', rest = ''] = /^\s*(\S+)\s*([\s\S]*)$/.exec(text) ?? []
  const first = tools.find(({ id, name }) => [id, name].includes(word.replace(/:$/, '')))
  if (first !== undefined) return { tool: first, text: rest }
  const [only] = tools
  if (only !== undefined && tools.length === 1) return { tool: only, text }
  if (Object.keys(data).length > 0) {
    const fitting = tools.filter(({ inputSchema }) => isComplete(inputSchema, data))
    if (fitting.length === 1 && fitting[0] !== undefined) return { tool: fitting[0], text }
  }
  const best = bestByWords(tools, text)
  return best && { tool: best, text }
}

/** Whether the data contains all required fields, of which there is at least one, and only known ones. */
function isComplete(schema: JsonObject, data: JsonObject): boolean {
  const read = argumentsFor({ ...schema, additionalProperties: false }, { data, text: '' })
  return requiredOf(schema).length > 0 && !('missing' in read) && !('faults' in read)
}

function bestByWords(tools: readonly McpTool[], text: string): McpTool | undefined {
  if (text.trim() === '') return undefined
  const skills = tools.map((tool) => ({
    id: tool.id,
    name: tool.title,
    description: tool.description,
    tags: wordsOf(tool.name),
    inputModes: [],
    outputModes: [],
    examples: [],
    allowedTools: [],
    performance: {},
    assessment: { keywords: keywordsOf(tool), specializations: [], antiPatterns: [] },
  }))
  const request = { taskSummary: text.slice(0, 10_000), weights: defaultWeights }
  const [best, second] = negotiate({ skills, queueDepth: 0 }, request).skillMatches
  if (best === undefined || (second !== undefined && best.score < second.score * leadMin)) return undefined
  const tool = tools.find(({ id }) => id === best.skillId)
  return tool?.isDestructive === true ? undefined : tool
}
