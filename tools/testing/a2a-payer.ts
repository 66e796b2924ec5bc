import { randomUUID } from 'node:crypto'
import type { TestAgent } from '@parley/agent/testing'
import { type Payment, TestWallet } from './paid-agent.ts'
import { raw } from './raw-http.ts'

/** The task in an answer of A2A, in the form that both versions share. */
export interface PaidTask {
  id: string
  contextId: string
  state: string
  text: string | undefined
  metadata: Record<string, unknown>
  history: { parts: { text?: string }[]; metadata?: Record<string, unknown> }[]
  artifacts: { parts: { text?: string }[] }[]
}

type Version = '1.0' | '0.3'

/** A client of A2A that speaks one version and pays with x402 in metadata. */
export class A2aPayer {
  readonly wallet = new TestWallet()
  readonly #agent: { url: string }
  readonly #token: string
  readonly #version: Version

  constructor(agent: Pick<TestAgent, 'url'>, token: string, version: Version) {
    this.#agent = agent
    this.#token = token
    this.#version = version
  }

  /** @param message fields of the message in addition to its text and ID */
  async send(
    text: string,
    message: Record<string, unknown> = {},
    headers: Record<string, string> = {},
    configuration?: object,
  ) {
    const parts = this.#isOne ? [{ text }] : [{ kind: 'text', text }]
    const sent = {
      messageId: randomUUID(),
      role: this.#isOne ? 'ROLE_USER' : 'user',
      ...(!this.#isOne && { kind: 'message' }),
      parts,
      ...message,
    }
    const method = this.#isOne ? 'SendMessage' : 'message/send'
    return this.call(method, { message: sent, ...(configuration && { configuration }) }, headers)
  }

  /** Pays the task with a payment for its price, or with the given payload. */
  async pay(taskId: string, payload?: unknown, message: Record<string, unknown> = {}) {
    return this.send('Here is the payment', {
      taskId,
      metadata: {
        'x402.payment.status': 'payment-submitted',
        'x402.payment.payload': payload ?? (await this.payment()),
      },
      ...message,
    })
  }

  payment(amount = '10000'): Promise<Payment> {
    return this.wallet.pay({ amount })
  }

  async get(id: string) {
    return this.call(this.#isOne ? 'GetTask' : 'tasks/get', { id })
  }

  async call(method: string, params: object, headers: Record<string, string> = {}) {
    const path = this.#isOne ? '/a2a/v1' : '/a2a/v0.3'
    const answer = await raw(this.#agent, {
      path,
      token: this.#token,
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    })
    const json = answer.json as { result?: unknown; error?: { code: number; message: string } } | undefined
    return { status: answer.status, headers: answer.headers, task: taskIn(json?.result), error: json?.error }
  }

  get #isOne(): boolean {
    return this.#version === '1.0'
  }
}

function taskIn(result: unknown): PaidTask {
  // oxlint-disable-next-line typescript/no-explicit-any -- the shape on the wire
  const task = ((result as any)?.task ?? result ?? {}) as any
  const { status } = task
  return {
    id: task.id,
    contextId: task.contextId,
    state: String(status?.state ?? '')
      .replace('TASK_STATE_', '')
      .toLowerCase()
      .replace('_', '-'),
    text: status?.message?.parts?.[0]?.text,
    metadata: status?.message?.metadata ?? {},
    history: task.history ?? [],
    artifacts: task.artifacts ?? [],
  }
}
