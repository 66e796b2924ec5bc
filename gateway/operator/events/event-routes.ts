import type { InnerCalls } from '@parley/kit/auth/inner-calls'
import { stallMs } from '@parley/kit/http/release-when-read'
import { eventStream, type OperationDescription } from '@parley/kit/http/route-description'
import { parseParams } from '@parley/wire/codecs/parley/params'
import { ParleyError } from '@parley/wire/errors'
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import type { TextLooks } from '../text-looks.ts'
import { authenticateView, type CallerView, type ViewParts } from '../view.ts'
import { liveEventTypes } from './event-ring.ts'
import { EventStream } from './event-stream.ts'
import type { LiveEvents } from './live-events.ts'

export interface EventRoutes extends ViewParts {
  live: LiveEvents
  inner: InnerCalls
  looks: TextLooks
}

const streamsMax = { perCaller: 20, all: 500 }
/** How often the token of an open stream is checked. */
const checkEveryMs = 20_000
/** The longest time of a timer. */
const timerMaxMs = 2_147_483_647

const idText = z.string().max(64)
const types = z
  .string()
  .max(200)
  .transform((text) => text.split(','))
  .pipe(z.array(z.enum(liveEventTypes)))
const query = z.object({
  types: types.optional().describe('The types of events, separated by commas. Default: all'),
  last_event_id: idText.optional().describe('Like the header Last-Event-ID'),
})

const eventsApi: OperationDescription = {
  summary: 'Follow the changes of tasks, decisions and agents',
  description: 'Events and their data are described in docs/spec/operator.md#events.',
  tag: 'operator',
  access: 'agent:read',
  query,
  headers: z.object({ 'last-event-id': idText.optional() }),
  responses: { 200: { description: 'A stream of events', content: eventStream } },
}

/** Adds `GET /operator/events` (spec/operator.md#events). */
export function addEventRoutes(app: FastifyInstance, routes: EventRoutes): void {
  const { live } = routes
  const open = new Map<EventStream, string>()
  app.addHook('preClose', async () => {
    live[Symbol.dispose]()
    for (const stream of open.keys()) stream.end('the gateway is stopping')
  })
  app.get('/operator/events', { config: { api: eventsApi } }, async (request, reply) => {
    const view = await authenticateView(routes, request)
    const { types: wanted = liveEventTypes, last_event_id: given } = parseParams(query, request.query)
    const header = request.headers['last-event-id']
    const lastId = given ?? (typeof header === 'string' ? header : undefined)
    requireRoom(open, view.caller)
    if (view.owner === undefined && view.texts) routes.looks.recordList(request, 'events')
    const stream = new EventStream({ live, view, wanted: new Set(wanted), lastId })
    open.set(stream, view.caller)
    const isInner = routes.inner.callerOf(request) !== undefined
    const watch = endWithToken(stream, view, isInner ? undefined : routes)
    stream.once('close', () => {
      open.delete(stream)
      watch[Symbol.dispose]()
    })
    // The response to the console has its own connection.
    if (!isInner) reply.raw.setTimeout(stallMs, () => reply.raw.destroy())
    return reply
      .headers({
        'content-type': 'text/event-stream; charset=utf-8',
        'cache-control': 'no-store',
        'x-accel-buffering': 'no',
      })
      .send(stream)
  })
}

/** @throws ParleyError TooManyRequests */
function requireRoom(open: ReadonlyMap<EventStream, string>, caller: string): void {
  const own = [...open.values()].filter((one) => one === caller).length
  if (own < streamsMax.perCaller && open.size < streamsMax.all) return
  throw new ParleyError('TooManyRequests', {
    message: 'Too many streams of events are open: close one, then try again',
    data: { reason: 'open_streams' },
    headers: { 'retry-after': '10' },
  })
}

/** Ends the stream when its token expires or is revoked. The console ends the streams of its sessions itself. */
function endWithToken(stream: EventStream, view: CallerView, checks: ViewParts | undefined): Disposable {
  const { token, introspection } = view.credentials
  const end = () => stream.end('the token has expired')
  const leftMs = (introspection.exp ?? Infinity) * 1000 - Date.now()
  const expiry = leftMs < timerMaxMs ? setTimeout(end, Math.max(0, leftMs)).unref() : undefined
  const check = async () => {
    if (checks === undefined) return
    const { active } = await checks.authenticator.introspector.introspect(token)
    if (!active) end()
  }
  // A check that fails for another reason is repeated.
  const timer = setInterval(() => void check().catch(() => {}), checkEveryMs).unref()
  const dispose = () => {
    clearInterval(timer)
    clearTimeout(expiry)
  }
  return { [Symbol.dispose]: dispose }
}
