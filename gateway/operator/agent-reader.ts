import type { Operator, OperatorGroup } from '@parley/kit/auth/operator-statement'
import { RecentMap } from '@parley/kit/did/recent-map'
import { type ErrorName, errorTable, ParleyError } from '@parley/wire/errors'
import { cleanLine } from '@parley/wire/model/clean-text'
import { jsonOf } from '@parley/wire/model/json-text'
import { z } from 'zod'
import { isExternal } from '../registry/admission.ts'
import type { AgentEntry } from '../registry/entry.ts'
import { forEachLimited, requestAgent } from '../routing/forwarding/agent-query.ts'
import { type DispatcherFor, targetOf } from '../routing/forwarding/agent-target.ts'
import { ResponseTooLarge } from '../routing/forwarding/exchange.ts'
import type { OperatorStatements } from './operator-statements.ts'

export interface AgentReaderOptions {
  registry: { admitted(): readonly AgentEntry[]; bySlug(slug: string): AgentEntry | undefined }
  dispatcherFor: DispatcherFor
  statements: Pick<OperatorStatements, 'for'>
  /** Deadline of one answer. Default 2 s. */
  timeoutMs?: number
  /** Deadline of all answers of `readAll`. Default 3 s. */
  totalTimeoutMs?: number
  /** Maximum size of one answer. Default 4 MiB. */
  answerMaxBytes?: number
  /** Maximum number of agents that `readAll` reads. All others are reported as unread. Default 1000. */
  agentsMax?: number
}

/** A request to an agent on behalf of an operator, or of a caller who sees only its own entries. */
export interface OperatorRequest {
  group: OperatorGroup
  /** Path and query at the agent, such as `/operator/tasks?limit=50`. */
  path: string
  /** The person that sees the answer (`viewOf`). */
  operator: Operator
  /** Sent as JSON with POST. Without it, the request is a GET, unless `method` is set. */
  body?: object
  method?: 'GET' | 'POST'
  /** Maximum size of the answer, if larger than that of the options. */
  answerMaxBytes?: number
  timeoutMs?: number
}

/** The validated answer of one agent. */
export interface AgentAnswer<T> {
  entry: AgentEntry
  value: T
  /** By how much the agent's clock is ahead of this one. Undefined if the agent does not report its time. */
  clockSkewMs: number | undefined
}

/** An agent that could not be read. The reason is a sentence for people. */
export interface UnreadAgent {
  agent: string
  reason: string
}

export interface AgentAnswers<T> {
  answers: AgentAnswer<T>[]
  unread: UnreadAgent[]
}

const concurrencyMax = 16
/** An agent that missed the deadline is reported as unread for this long without another request. */
const silentForMs = 5000
const silentMax = 1000
const messageMaxChars = 300

const errorAnswer = z.object({
  error: z.object({
    code: z.int(),
    message: z.string(),
    data: z.object({ reason: z.string().max(64).optional() }).optional(),
  }),
})

/** The errors of an agent that are returned to the operator. All others mean that the agent cannot be read. */
const passedOn: ReadonlySet<string> = new Set<ErrorName>([
  'InvalidParams',
  'TaskNotFound',
  'TaskNotCancelable',
  'TaskImmutable',
  'NotFound',
  'Conflict',
  'PushNotificationNotSupported',
])

/**
 * Reads the agents of this deployment with operator statements: supervised agents, agents that were admitted with `own`, and
 * foreign agents behind the relay, which keeps their tasks. External agents are never read.
 */
export class AgentReader {
  readonly #options: AgentReaderOptions
  readonly #silentUntil = new RecentMap<string, number>(silentMax)

  constructor(options: AgentReaderOptions) {
    this.#options = options
  }

  /** The agents that the gateway may read, whether they answer now or not. */
  readable(): readonly AgentEntry[] {
    return this.#options.registry.admitted().filter((entry) => !isExternal(entry))
  }

  /** Returns the agent with this slug if the gateway may read it. */
  find(slug: string): AgentEntry | undefined {
    const entry = this.#options.registry.bySlug(slug)
    return entry?.admitted === true && !isExternal(entry) ? entry : undefined
  }

  /**
   * Reads one agent and validates its answer.
   * @throws ParleyError the agent's error if the request caused it (TaskNotFound, TaskNotCancelable, Conflict and the like), else
   * Unavailable with `data.reason` `agent_unread` and a message for people
   */
  async read<T>(
    entry: AgentEntry,
    schema: z.ZodType<T>,
    request: OperatorRequest,
    signal?: AbortSignal,
  ): Promise<AgentAnswer<T>> {
    const reason = this.#unreadable(entry)
    if (reason !== undefined) throw unread(entry, reason)
    const { timeoutMs = this.#options.timeoutMs ?? 2000 } = request
    const deadline = AbortSignal.timeout(timeoutMs)
    try {
      return await this.#read(entry, schema, request, signal ? AbortSignal.any([signal, deadline]) : deadline)
    } catch (error) {
      if (error instanceof ParleyError) throw error
      if (error instanceof ResponseTooLarge) throw unread(entry, tooLarge(entry), error)
      if (!deadline.aborted && signal?.aborted !== true)
        throw unread(entry, `Agent ${entry.slug} closed the connection. Try again.`, error)
      if (deadline.aborted) this.#silentUntil.set(entry.id, Date.now() + silentForMs)
      throw unread(entry, `Agent ${entry.slug} did not answer in time. Try again.`, error)
    }
  }

  /**
   * Reads several agents, by default all readable ones, at most 16 at a time. Agents without a valid answer are in `unread`.
   * @param request a request, or a function that returns the request for an agent, or undefined to leave it out
   */
  async readAll<T>(
    schema: z.ZodType<T>,
    request: OperatorRequest | ((entry: AgentEntry) => OperatorRequest | undefined),
    { agents = this.readable(), signal }: { agents?: readonly AgentEntry[]; signal?: AbortSignal } = {},
  ): Promise<AgentAnswers<T>> {
    const { totalTimeoutMs = 3000, agentsMax = 1000 } = this.#options
    const total = AbortSignal.timeout(totalTimeoutMs)
    const stop = signal ? AbortSignal.any([signal, total]) : total
    const result: AgentAnswers<T> = { answers: [], unread: [] }
    const pending = new Set(agents)
    for (const entry of agents.slice(agentsMax)) {
      pending.delete(entry)
      const reason = `At most ${agentsMax} agents are read at a time. Name this agent to read it.`
      result.unread.push({ agent: entry.slug, reason })
    }
    const readOne = async (entry: AgentEntry) => {
      const one = typeof request === 'function' ? request(entry) : request
      if (one !== undefined) {
        try {
          result.answers.push(await this.read(entry, schema, one, stop))
        } catch (error) {
          result.unread.push({ agent: entry.slug, reason: sentenceOf(entry, error) })
        }
      }
      pending.delete(entry)
    }
    await forEachLimited([...pending], concurrencyMax, readOne, () => stop.aborted)
    for (const { slug } of pending)
      result.unread.push({ agent: slug, reason: `Agent ${slug} was not read in time. Try again.` })
    return result
  }

  async #read<T>(
    entry: AgentEntry,
    schema: z.ZodType<T>,
    request: OperatorRequest,
    signal: AbortSignal,
  ): Promise<AgentAnswer<T>> {
    const { dispatcherFor, statements, answerMaxBytes = 4 * 1024 * 1024 } = this.#options
    const { body, method = body === undefined ? 'GET' : 'POST', group, operator, path } = request
    const target = targetOf(entry, path, dispatcherFor)
    const authorization = `Bearer ${await statements.for(entry, group, operator)}`
    const isJson = body !== undefined && { 'content-type': 'application/json' }
    const sentAt = Date.now()
    const { head, bytes } = await requestAgent(
      { ...target, authorization },
      {
        method,
        headers: { accept: 'application/json', ...isJson },
        body: body === undefined ? undefined : Buffer.from(JSON.stringify(body)),
        signal,
        answerMaxBytes: request.answerMaxBytes ?? answerMaxBytes,
      },
    )
    const json = jsonOf(bytes.toString('utf8'))
    if (head.status !== 200) throw errorOf(entry, head.status, json)
    const parsed = schema.safeParse(json)
    if (!parsed.success) {
      const reason = `Agent ${entry.slug} sent an answer in another form. Update the agent.`
      throw unread(entry, reason, parsed.error)
    }
    const clockSkewMs = skewOf(head.headers['x-parley-time'], (sentAt + Date.now()) / 2)
    return { entry, value: parsed.data, clockSkewMs }
  }

  /** The reason why a request would be useless, or undefined. */
  #unreadable(entry: AgentEntry): string | undefined {
    const { id, slug, status, relay, quarantine } = entry
    if (isExternal(entry)) return `Agent ${slug} is an external agent. Its own operator can read its entries.`
    if (quarantine?.by !== undefined)
      return `Agent ${slug} is quarantined and receives no requests. Release it to read its entries.`
    if (relay === undefined && status === 'starting') return `Agent ${slug} is starting. Try again.`
    if (relay === undefined && status !== 'ready')
      return `Agent ${slug} does not answer. Check its process and its log.`
    if ((this.#silentUntil.get(id) ?? 0) > Date.now())
      return `Agent ${slug} did not answer in time a moment ago. Try again.`
    return undefined
  }
}

function errorOf(entry: AgentEntry, status: number, json: unknown): ParleyError {
  const { slug } = entry
  const answer = errorAnswer.safeParse(json).data?.error
  const reason = answer?.data?.reason
  if (status === 404 && (answer === undefined || reason === 'route' || reason === 'operator_api'))
    return unread(entry, `Agent ${slug} has no operator API. Update the agent.`)
  const name = Object.entries(errorTable).find(([, row]) => row.code === answer?.code)?.[0]
  if (answer !== undefined && isPassedOn(name)) {
    return new ParleyError(name, {
      message: cleanLine(answer.message, messageMaxChars),
      data: { agent: slug, ...(reason !== undefined && { reason: cleanLine(reason, 64) }) },
    })
  }
  if (status === 401 || status === 403)
    return unread(
      entry,
      `Agent ${slug} refused the gateway’s statement. Check its GATEWAY_URL and the clocks of both machines.`,
    )
  if (status === 429) return unread(entry, `Agent ${slug} receives too many requests. Try again in a minute.`)
  return unread(entry, `Agent ${slug} answered with HTTP ${status}. Check its log.`)
}

const tooLarge = ({ slug }: AgentEntry) =>
  `The answer of agent ${slug} is too large. Request fewer entries; the caller of a large task reads it with tasks/get.`

const isPassedOn = (name: string | undefined): name is ErrorName => name !== undefined && passedOn.has(name)

function unread({ slug }: AgentEntry, message: string, cause?: unknown): ParleyError {
  return new ParleyError('Unavailable', {
    message,
    data: { reason: 'agent_unread', agent: slug },
    headers: { 'retry-after': '2' },
    cause,
  })
}

function sentenceOf({ slug }: AgentEntry, error: unknown): string {
  if (!(error instanceof ParleyError) || error.error === 'InternalError')
    return `Agent ${slug} cannot be read.`
  const { message } = error
  return message.endsWith('.') ? message : `${message}.`
}

function skewOf(header: unknown, now: number): number | undefined {
  const time = typeof header === 'string' ? Date.parse(header) : Number.NaN
  return Number.isNaN(time) ? undefined : Math.round(time - now)
}
