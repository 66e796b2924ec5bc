/**
 * The minimum cost of `tasks/get` with Fastify and zod: one route that reads the body, validates it and sends prepared
 * bytes (`ANSWER`), without a token or a store.
 */
import Fastify from 'fastify'
import { z } from 'zod'
import { tellAddress } from '../support/tell-address.ts'

const answer = process.env['ANSWER'] ?? ''
const body = z.object({
  jsonrpc: z.literal('2.0'),
  id: z.union([z.string(), z.int()]),
  method: z.literal('tasks/get'),
  params: z.object({ task_id: z.uuid(), history_length: z.int().min(0).optional() }),
})

const app = Fastify({ logger: false })
app.post('/', (request, reply) => {
  const parsed = body.safeParse(request.body)
  if (!parsed.success) return reply.code(400).send(parsed.error.issues)
  return reply.type('application/json; charset=utf-8').send(answer)
})
await app.listen({ host: '127.0.0.1', port: 0 })
tellAddress(app.server)
process.on('SIGTERM', () => process.exit(0))
