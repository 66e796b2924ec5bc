import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { request } from 'undici'
import { type A2aBinding, A2aCaller, type A2aRequest, a2aBindings } from '../testing/a2a-caller.ts'

const clientsCount = 4

/** Clients that send until `end` and record the acknowledged tasks. */
export class Clients {
  readonly #url: string
  readonly #token: string
  readonly #acknowledged: string[] = []
  readonly #failures: string[] = []
  /** What happens at the moment, for the list of failures. */
  phase = ''
  #sent = 0
  #over = false
  readonly #running: Promise<void>[]

  private constructor(url: string, token: string, byA2a: boolean) {
    this.#url = url
    this.#token = token
    const a2a = byA2a ? a2aBindings : []
    this.#running = [
      ...Array.from({ length: clientsCount }, () => this.#send()),
      ...a2a.map((binding) => this.#sendByA2a(binding)),
    ]
  }

  /**
   * Waits until the gateway serves the agent's card.
   * @param url address of the agent at the gateway
   * @param options.byA2a whether some clients send by A2A, with calls that wait for their tasks
   */
  static async start(url: string, token: string, { byA2a }: { byA2a: boolean }): Promise<Clients> {
    for (let attempt = 0; attempt < 300; attempt += 1) {
      const card = await fetch(`${url}.well-known/agent.json`)
      await card.body?.cancel()
      if (card.ok) return new Clients(url, token, byA2a)
      await wait(100)
    }
    throw new Error('the gateway does not know the agent')
  }

  async #send(): Promise<void> {
    while (!this.#over) {
      const parts = [{ kind: 'text', text: '2 + 2' }]
      const message = { role: 'user', kind: 'message', messageId: randomUUID(), parts }
      const task = (await this.#call('message/send', { message })) as { id: string } | undefined
      if (task === undefined) continue
      this.#acknowledged.push(task.id)
      await this.#call('tasks/get', { task_id: task.id })
      await wait(50)
    }
  }

  #fail(text: string): void {
    this.#failures.push(`${new Date().toISOString()} ${this.phase}: ${text}`)
  }

  async #sendByA2a(binding: A2aBinding): Promise<void> {
    const caller = this.#callerBy(binding)
    while (!this.#over) {
      this.#sent += 1
      try {
        const { task } = await caller.send({ text: '2 + 2', messageId: randomUUID() })
        this.#acknowledged.push(task.id)
        if (task.state !== 'completed') this.#fail(`${binding}: answered with ${task.state}`)
        await wait(50)
      } catch (error) {
        this.#fail(`${binding}: ${(error as Error).message}`)
        await wait(200)
      }
    }
  }

  #callerBy(binding: A2aBinding): A2aCaller {
    return new A2aCaller({
      binding,
      url: this.#url,
      token: () => this.#token,
      timeoutMs: 30_000,
      fetch: fetchOnce,
    })
  }

  /** The number of acknowledged tasks that a client of A2A reads as completed. */
  async #readable(): Promise<number> {
    const callers = a2aBindings.map((binding) => this.#callerBy(binding))
    let count = 0
    for (const [index, id] of this.#acknowledged.entries()) {
      const task = await callers[index % callers.length]?.get(id).catch(() => undefined)
      if (task?.state === 'completed') count += 1
    }
    return count
  }

  async #call(method: string, params: object): Promise<unknown> {
    this.#sent += 1
    try {
      const answer = await request(this.#url, {
        method: 'POST',
        // nginx closes idle connections on reload, so requests on kept connections would fail.
        reset: true,
        headers: { authorization: `Bearer ${this.#token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: '1', method, params }),
      })
      const text = await answer.body.text()
      if (answer.statusCode === 200) return (JSON.parse(text) as { result: unknown }).result
      this.#fail(`${method}: ${answer.statusCode} ${text.slice(0, 300)}`)
    } catch (error) {
      this.#fail(`${method}: ${(error as Error).message}`)
    }
    await wait(200)
    return undefined
  }

  /** Stops the clients and polls every acknowledged task until it completes, for at most 30 s. */
  async end() {
    this.#over = true
    await Promise.all(this.#running)
    const [sent, failures] = [this.#sent, this.#failures.slice(0, 10)]
    const failed = this.#failures.length
    let count = 0
    const end = Date.now() + 30_000
    for (const id of this.#acknowledged) {
      for (let state = ''; state !== 'completed' && Date.now() < end; ) {
        const task = (await this.#call('tasks/get', { task_id: id })) as
          | { status: { state: string } }
          | undefined
        state = task?.status.state ?? ''
        if (state === 'completed') count += 1
        else await wait(100)
      }
    }
    const readable = await this.#readable()
    return { sent, failed, failures, readable, completed: { count, of: this.#acknowledged.length } }
  }
}

/** Sends a request on a connection of its own. */
async function fetchOnce(url: string, given: A2aRequest): Promise<Response> {
  const { method, signal, body: sent } = given
  const {
    statusCode: status,
    headers,
    body,
  } = await request(url, {
    method,
    headers: given.headers,
    signal,
    reset: true,
    ...(sent !== undefined && { body: sent }),
  })
  const answered = new Headers()
  for (const [name, value] of Object.entries(headers)) answered.set(name, String(value))
  return new Response(await body.text(), { status, headers: answered })
}
