import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { request } from 'undici'

const clientsCount = 4

/** Clients that send until `end` and record the acknowledged tasks. */
export class Clients {
  readonly #url: string
  readonly #token: string
  readonly #acknowledged: string[] = []
  readonly #failures: string[] = []
  #sent = 0
  #over = false
  readonly #running: Promise<void>[]

  private constructor(url: string, token: string) {
    this.#url = url
    this.#token = token
    this.#running = Array.from({ length: clientsCount }, () => this.#send())
  }

  /** Waits until the gateway serves the agent's card. @param url address of the agent at the gateway */
  static async start(url: string, token: string): Promise<Clients> {
    for (let attempt = 0; attempt < 300; attempt += 1) {
      const card = await fetch(`${url}.well-known/agent.json`)
      await card.body?.cancel()
      if (card.ok) return new Clients(url, token)
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
      this.#failures.push(`${method}: ${answer.statusCode} ${text.slice(0, 300)}`)
    } catch (error) {
      this.#failures.push(`${method}: ${(error as Error).message}`)
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
    return { sent, failed, failures, completed: { count, of: this.#acknowledged.length } }
  }
}
