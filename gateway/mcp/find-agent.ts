import type { CallToolResult } from '@modelcontextprotocol/server'
import { requireNoDelegate, requireScope } from '@parley/kit/auth/authenticate'
import { addressOf } from '@parley/kit/http/request-limits'
import { parseNegotiation } from '@parley/negotiation/score/request'
import { gatewayAnswerOut } from '@parley/wire/codecs/parley/negotiation'
import { parseParams } from '@parley/wire/codecs/parley/params'
import { cleanLine, cleanObject } from '@parley/wire/model/clean-text'
import type { Candidate } from '@parley/wire/model/negotiation'
import type { JsonObject } from '@parley/wire/model/task'
import { z } from 'zod'
import type { Negotiator } from '../routing/negotiation/negotiator.ts'
import type { Exchange } from './exchange.ts'
import { toolNameOf } from './tool-names.ts'

const types = z.array(z.string().max(256)).max(100).optional()

const findArguments = z.strictObject({
  task: z.string().min(1).max(100_000),
  details: z.string().max(1_000_000).optional(),
  input_types: types,
  output_types: types,
  max_cost: z.string().max(61).optional(),
  limit: z.int().min(1).max(50).default(5),
})

/** Returns the tool `find_agent`: the negotiation with its reasons, and the tools of the candidates. */
export function agentFinder(negotiator: Negotiator) {
  return async ({ caller, request, directory }: Exchange, args: JsonObject): Promise<CallToolResult> => {
    requireNoDelegate(caller)
    requireScope(caller, 'agent:read')
    const { task, details, input_types, output_types, max_cost, limit } = parseParams(findArguments, args)
    const question = {
      wanted: parseNegotiation({
        taskSummary: task,
        ...(details !== undefined && { taskDetails: details }),
        ...(input_types !== undefined && { inputMimeTypes: input_types }),
        ...(output_types !== undefined && { outputMimeTypes: output_types }),
        ...(max_cost !== undefined && { maxCostAmount: max_cost }),
      }),
      owner: caller.id,
      agents: directory,
      address: addressOf(request),
      method: 'agent/negotiation',
      limit,
    }
    const decision = await negotiator.decide(question)
    await negotiator.recordInBackground(decision, question)
    const { candidates } = decision.answer
    const tools = Object.fromEntries(
      candidates.map(({ agent: { slug } }) => [slug, toolsOf(directory.bySlug(slug)?.skills ?? [], slug)]),
    )
    const lines = candidates.map((one, at) => `${at + 1}. ${lineOf(one, tools[one.agent.slug] ?? [])}`)
    const text = lines.length === 0 ? 'No agent fits this task.' : lines.join('\n')
    const structuredContent = { ...cleanObject(gatewayAnswerOut(decision.answer)), tools }
    return { content: [{ type: 'text', text }], structuredContent }
  }
}

const toolsOf = (skills: readonly { id: string }[], slug: string): string[] =>
  skills.slice(0, 20).map(({ id }) => toolNameOf(slug, id))

function lineOf({ agent, answer }: Candidate, tools: readonly string[]): string {
  const reasons = answer.reasons.map((reason) => cleanLine(reason, 300)).join('; ')
  const fit = answer.canHandle ? 'can do it' : 'cannot do it'
  return `${cleanLine(agent.name, 128)} (${agent.slug}): ${fit}, score ${answer.score}. ${reasons}. Tools: ${tools.join(', ') || 'none'}`
}
