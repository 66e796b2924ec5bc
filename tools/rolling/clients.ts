import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { request } from 'undici'

interface Credentials {
  client_id: string
  client_secret: string
  token_url: string
}

const clientsCount = 4

/** Clients that send until they are told to end, and keep a record of what was acknowledged. */
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

  /** With the development client of the embedded OAuth server; waits until the agent is known at the gateway. */
  static async start(url: string, dataDir: string): Promise<Clients> {
    const { client_id, client_secret, token_url } = JSON.parse(
      readFileSync(path.join(dataDir, 'dev-client.json'), 'utf8'),
    ) as Credentials
    const body = new URLSearchParams({ grant_type: 'client_credentials', client_id, client_secret })
    const answer = (await (await fetch(token_url, { method: 'POST', body })).json()) as {
      access_token: string
    }
    for (let attempt = 0; attempt < 300; attempt += 1) {
      const card = await fetch(`${url}.well-known/agent.json`)
      await card.body?.cancel()
      if (card.ok) return new Clients(url, answer.access_token)
      await wait(100)
    }
    throw new Error('the agent does not come to the gateway')
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
        // nginx closes idle connections when it is reloaded; a client that keeps them must be ready for that.
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

  /** Stops them, and asks for every task until it has completed, at most half a minute. */
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
