import { cardVary, dialectOf, partsOf } from '@parley/wire/codecs/dialects'
import type { AgentCard } from '@parley/wire/model/card'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ModificationTimes, sendCacheable } from './send-cacheable.ts'

/**
 * Returns a function that sends a card in the dialect of the request. It remembers since when each card has been the same.
 * @param options.perCaller whether callers with a token receive another card
 */
export function cardSender({ perCaller = false }: { perCaller?: boolean } = {}) {
  const modified = new ModificationTimes()
  return (request: FastifyRequest, reply: FastifyReply, path: string, card: AgentCard): FastifyReply => {
    const codec = dialectOf({ ...partsOf(request.url), path, headers: request.headers })
    const json = JSON.stringify(codec.writeCard(card, path))
    return sendCacheable(request, reply, json, { perCaller, vary: cardVary(path), modified })
  }
}
