import { signal } from '@preact/signals'
import { ApiError, api, errorOf, isAborted } from '../../api.js'
import { asApiError } from '../../load.js'
import { hasEnded, isPaused, newTurn, turnAfter, turnOfTask, turnWithReply } from './conversation.js'
import { Exchanges } from './exchanges.js'
import { automatic, messageRequest, pathOf, rpcRequest } from './requests.js'

/**
 * @typedef {import('./conversation.js').Part} Part
 * @typedef {import('./conversation.js').Turn} Turn
 * @typedef {import('./requests.js').RpcRequest} RpcRequest
 */

const reconnectionsMax = 5
const tasksMax = 50

/** A conversation with one agent, or with the agents that the gateway chooses. */
export class Talk {
  turns = signal(/** @type {Turn[]} */ ([]))
  /** The turn that receives events. */
  active = signal(/** @type {string | undefined} */ (undefined))
  exchanges = new Exchanges()
  #path
  #closed = new AbortController()

  /**
   * @param {string} agent A slug, or `auto`
   * @param {string} contextId
   */
  constructor(agent, contextId) {
    this.agent = agent
    this.contextId = contextId
    this.#path = pathOf(agent)
  }

  /** Loads the tasks of the context, and follows the last one if it has not ended. */
  async load() {
    const params = { context_id: this.contextId, limit: tasksMax }
    const body = rpcRequest('tasks/list', params)
    const answer = await api(this.#path, { method: 'POST', body, signal: this.#closed.signal })
    const tasks = Array.isArray(answer?.result) ? answer.result : []
    const agents = tasks.length === 0 ? new Map() : await this.#agents()
    const known = tasks.map((/** @type {any} */ task) => {
      const turn = turnOfTask(task)
      return { ...turn, agent: agents.get(task.id) ?? this.#namedAgent() }
    })
    this.turns.value = known.reverse()
    const last = this.turns.value.at(-1)
    if (last !== undefined && !hasEnded(last.state) && !isPaused(last.state)) void this.follow(last.key)
  }

  /**
   * The agents of the tasks. Without them, the conversation is still complete.
   * @returns {Promise<Map<string, string>>}
   */
  async #agents() {
    const query = { context: this.contextId, limit: tasksMax }
    const list = await api('/operator/tasks', { query, signal: this.#closed.signal }).catch(() => undefined)
    /** @type {{ task_id: string, agent: string }[]} */
    const tasks = list?.tasks ?? []
    return new Map(tasks.map(({ task_id: id, agent }) => [id, agent]))
  }

  #namedAgent() {
    return this.agent === automatic ? undefined : this.agent
  }

  /**
   * Sends a message as a new task.
   * @param {Part[]} parts
   */
  async send(parts) {
    const key = crypto.randomUUID()
    this.turns.value = [...this.turns.value, newTurn(key, parts)]
    await this.#stream(key, messageRequest({ parts, contextId: this.contextId }))
  }

  /**
   * Sends the next message of a paused task.
   * @param {string} key
   * @param {Part[]} parts
   */
  async reply(key, parts) {
    const taskId = this.#turn(key)?.taskId
    this.#change(key, (turn) => turnWithReply(turn, parts))
    await this.#stream(key, messageRequest({ parts, contextId: this.contextId, taskId }))
  }

  /**
   * Sends a message again that was not accepted.
   * @param {string} key
   * @param {string} [paymentSession]
   */
  async repeat(key, paymentSession) {
    const turn = this.#turn(key)
    const parts = turn?.messages.findLast(({ role }) => role === 'user')?.parts ?? []
    const taskId = turn?.taskId
    this.#change(key, (old) => ({ ...old, error: '', state: 'sending', unpaid: false }))
    await this.#stream(key, messageRequest({ parts, contextId: this.contextId, taskId, paymentSession }))
  }

  /**
   * Pays for the message that was refused, or for the task that waits, with a completed session.
   * @param {string} key
   * @param {string} paymentSession
   */
  async pay(key, paymentSession) {
    const taskId = this.#turn(key)?.taskId
    this.#change(key, (turn) => ({ ...turn, unpaid: false }))
    if (taskId === undefined) return this.repeat(key, paymentSession)
    const parts = [{ kind: 'text', text: 'Paid' }]
    this.#change(key, (turn) => turnWithReply(turn, parts))
    await this.#stream(key, messageRequest({ parts, contextId: this.contextId, taskId, paymentSession }))
  }

  /** @param {string} key */
  async cancel(key) {
    const taskId = this.#turn(key)?.taskId
    if (taskId === undefined) return
    const answer = await this.#call(rpcRequest('tasks/cancel', { task_id: taskId }))
    const state = answer?.result?.status?.state
    if (typeof state === 'string') this.#change(key, (turn) => ({ ...turn, state, progress: '' }))
  }

  /**
   * Receives the events of a task that this page does not receive yet, or no longer.
   * @param {string} key
   */
  async follow(key) {
    const turn = this.#turn(key)
    if (turn?.taskId === undefined) return
    this.#change(key, (old) => ({ ...old, error: '' }))
    const params = { task_id: turn.taskId, ...(turn.sequence > 0 && { after_sequence: turn.sequence }) }
    await this.#stream(key, rpcRequest('tasks/resubscribe', params))
  }

  /** Ends the streams. The tasks continue. */
  close() {
    this.#closed.abort()
  }

  /** @param {RpcRequest} body */
  async #call(body) {
    const response = await this.exchanges.send(this.#path, body, this.#closed.signal)
    const json = await this.exchanges.json(body.id, response)
    if (response.ok && json?.error === undefined) return json
    throw errorOf(response, json)
  }

  /**
   * @param {string} key
   * @param {RpcRequest} body
   */
  async #stream(key, body) {
    this.active.value = key
    try {
      await this.#receive(key, body)
      await this.#reconnect(key)
    } catch (error) {
      if (isAborted(error)) return
      const { message, next, status } = asApiError(error)
      this.#change(key, (turn) => ({
        ...turn,
        error: `${message} ${next}`.trim(),
        state: turn.state === 'sending' ? 'not sent' : turn.state,
        unpaid: status === 402,
      }))
    } finally {
      if (this.active.value === key) this.active.value = undefined
    }
  }

  /**
   * @param {string} key
   * @param {RpcRequest} body
   */
  async #receive(key, body) {
    const response = await this.exchanges.send(this.#path, body, this.#closed.signal)
    const { headers } = response
    const agent = headers.get('x-agent') ?? this.#turn(key)?.agent ?? this.#namedAgent()
    const decisionId = headers.get('x-negotiation-id') ?? this.#turn(key)?.decisionId
    this.#change(key, (turn) => ({ ...turn, agent, decisionId }))
    const isStream = headers.get('content-type')?.startsWith('text/event-stream') === true
    if (!response.ok || !isStream || response.body === null) {
      const json = await this.exchanges.json(body.id, response)
      if (response.status === 402) throw paymentRequired()
      throw errorOf(response, json)
    }
    for await (const event of this.exchanges.events(body.id, response.body))
      this.#change(key, (turn) => turnAfter(turn, event))
  }

  /**
   * Requests the stream again while the task is in progress.
   * @param {string} key
   */
  async #reconnect(key) {
    for (let tries = 0; tries < reconnectionsMax; tries++) {
      const turn = this.#turn(key)
      if (turn?.taskId === undefined || hasEnded(turn.state) || isPaused(turn.state)) return
      await new Promise((resolve) => setTimeout(resolve, 500 * 2 ** tries))
      const params = { task_id: turn.taskId, ...(turn.sequence > 0 && { after_sequence: turn.sequence }) }
      await this.#receive(key, rpcRequest('tasks/resubscribe', params))
    }
    throw new ApiError('The connection to the agent is lost.', {
      next: 'The task continues. Choose "Reconnect" to see its events.',
    })
  }

  /** @param {string} key */
  #turn(key) {
    return this.turns.value.find((turn) => turn.key === key)
  }

  /**
   * @param {string} key
   * @param {(turn: Turn) => Turn} change
   */
  #change(key, change) {
    this.turns.value = this.turns.value.map((turn) => (turn.key === key ? change(turn) : turn))
  }
}

const paymentRequired = () =>
  new ApiError('The agent requires a payment for this message.', {
    next: 'Pay below; the message is then sent.',
    status: 402,
  })
