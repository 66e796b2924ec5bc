import type { RankedAgent } from '@parley/negotiation/index/agent-index'
import type { NegotiationRequest } from '@parley/negotiation/score/request'
import { taskTextOf } from '@parley/negotiation/words/instruction'
import { needsOf } from '@parley/negotiation/words/needs'
import type { GatewayNegotiation, Need } from '@parley/wire/model/negotiation'
import { equalScores } from './choices.ts'

/** A part of a request that asks for work by itself, with the agents that can serve it, best first. */
export interface RankedNeed {
  text: string
  able: readonly RankedAgent[]
}

/** A part of a request and the agent that would serve it, with the agent's score for this part. */
export interface ServedNeed {
  text: string
  server: RankedAgent | undefined
}

const rounding = 1e-9
const textMaxChars = 1000

/**
 * The negotiation requests for the parts of a request, in the order of the text; empty if it has only one part. The first part
 * receives the material, so that the input types apply only to it, and the output types apply to the last part.
 */
export function needRequests(wanted: NegotiationRequest): NegotiationRequest[] {
  const { taskSummary, taskDetails, inputMimeTypes, outputMimeTypes, ...others } = wanted
  const text = taskDetails === undefined ? taskSummary : `${taskSummary}\n${taskDetails}`
  const needs = needsOf(taskTextOf(text).instruction)
  if (needs.length < 2) return []
  return needs.map((need, at) => ({
    ...others,
    taskSummary: need,
    ...(at === 0 && inputMimeTypes !== undefined && { inputMimeTypes }),
    ...(at === needs.length - 1 && outputMimeTypes !== undefined && { outputMimeTypes }),
  }))
}

/**
 * Assigns an agent to each part: the best one, or for all parts the agent whose score is within 0.05 of the best one of each part,
 * because one agent for everything is better than a chain.
 */
export function servedNeeds(needs: readonly RankedNeed[]): ServedNeed[] {
  const [first, ...others] = needs
  const isEqualIn = ({ able }: RankedNeed, id: string) => {
    const least = Math.max(0, ...able.map(({ exactScore }) => exactScore)) - equalScores - rounding
    return able.find((ranked) => ranked.id === id && ranked.exactScore >= least)
  }
  const shared = first?.able.find(({ id }) => [first, ...others].every((need) => isEqualIn(need, id)))
  return needs.map((need) => ({
    text: need.text,
    server: shared === undefined ? need.able[0] : isEqualIn(need, shared.id),
  }))
}

/** The agent that serves each part; undefined if there are several agents, or a part without an agent. */
export function onlyServer(needs: readonly ServedNeed[]): RankedAgent | undefined {
  const server = needs[0]?.server
  return needs.every((need) => need.server?.id === server?.id) ? server : undefined
}

/** The answer to the whole request of an agent that serves each of its parts. Its score is that of the part that it serves worst. */
export function answerForAll(whole: RankedAgent, needs: readonly ServedNeed[]): RankedAgent {
  const worst = needs.reduce<RankedAgent | undefined>(
    (least, { server }) =>
      least !== undefined && least.exactScore <= (server?.exactScore ?? 0) ? least : server,
    undefined,
  )
  const { rejectionReason, ...others } = whole
  return {
    ...others,
    canHandle: true,
    score: worst?.score ?? 0,
    exactScore: worst?.exactScore ?? 0,
    reasons: [
      ...whole.reasons.filter((reason) => reason !== rejectionReason),
      'serves each part of the request',
    ],
  }
}

/**
 * The candidates in an order that covers the parts: the best one, the agents that serve a part, in the order of the parts, and the others.
 * @param wholes the answers to the whole request of agents that may be missing among the candidates
 */
export function covering(
  candidates: readonly RankedAgent[],
  needs: readonly ServedNeed[],
  { wholes, limit }: { wholes: readonly RankedAgent[]; limit: number },
): RankedAgent[] {
  const known = new Map(wholes.map((ranked) => [ranked.id, ranked]))
  const servers = needs.flatMap(({ server }) =>
    server === undefined ? [] : [known.get(server.id) ?? forPartOnly(server)],
  )
  const inOrder = [...candidates.slice(0, 1), ...servers, ...candidates]
  return [...new Map(inOrder.map((ranked) => [ranked.id, ranked])).values()].slice(0, limit)
}

/** An agent that breaks a hard constraint of the whole request. */
const forPartOnly = (server: RankedAgent): RankedAgent => {
  const rejectionReason = 'can do a part of the request only'
  return { ...server, canHandle: false, rejectionReason, reasons: [...server.reasons, rejectionReason] }
}

/** The parts as the caller reads them. */
export function needsOut(needs: readonly ServedNeed[]): Need[] {
  return needs.map(({ text, server }, at) => ({
    position: at + 1,
    text: text.length > textMaxChars ? `${text.slice(0, textMaxChars - 1).toWellFormed()}…` : text,
    agent: server?.slug ?? null,
    score: server?.score ?? 0,
  }))
}

/** An answer for the store, which keeps no text of a request. */
export function withoutTexts(answer: GatewayNegotiation): GatewayNegotiation {
  if (answer.needs === undefined) return answer
  return { ...answer, needs: answer.needs.map(({ text: _text, ...need }) => need) }
}
