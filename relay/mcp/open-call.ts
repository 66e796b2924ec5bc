import type { ElicitResult } from '@modelcontextprotocol/client'
import { type InputRequest, type InputResponses, readElicitation } from './input-requests.ts'
import type { McpSession, ToolAnswer, ToolCall } from './session.ts'
import type { Sessions } from './sessions.ts'

/** What happens during a call. */
export type CallEvent =
  | { kind: 'progress'; text: string }
  | { kind: 'input'; request: InputRequest }
  | { kind: 'answer'; answer: ToolAnswer }
  | { kind: 'failure'; error: unknown }

/** How long a call waits for the input of the caller. */
const inputMaxMs = 3_600_000

/** A call of a tool, which remains open while a legacy server waits for input of the caller. */
export class OpenCall {
  readonly #abort = new AbortController()
  #progress: string | undefined
  #input: { request: InputRequest; answer: (result: ElicitResult) => void } | undefined
  #isInputNew = false
  #end: CallEvent | undefined
  #wake: (() => void) | undefined

  constructor(sessions: Sessions, session: McpSession, call: Omit<ToolCall, 'progress' | 'signal'>) {
    void this.#run(sessions, session, call)
  }

  /** Resolves with the next event. Progress that was not read in time is replaced with newer progress. */
  async next(signal: AbortSignal): Promise<CallEvent> {
    const stop = () => this.#wake?.()
    signal.addEventListener('abort', stop)
    try {
      for (;;) {
        signal.throwIfAborted()
        const event = this.#take()
        if (event !== undefined) return event
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
      }
    } finally {
      signal.removeEventListener('abort', stop)
    }
  }

  /** The request for input without an answer. */
  get input(): InputRequest | undefined {
    return this.#input?.request
  }

  respond(responses: InputResponses): void {
    const { request, answer } = this.#input ?? {}
    this.#input = undefined
    const response = responses[request?.key ?? '']
    answer?.(response === undefined ? { action: 'cancel' } : elicitResult(response))
  }

  /** Cancels the call at the server. */
  cancel(): void {
    this.#abort.abort(new Error('The call was canceled'))
  }

  /** Called by the session for a request of the server for input. */
  async elicit(params: Record<string, unknown>, signal: AbortSignal): Promise<ElicitResult> {
    if (this.#input !== undefined) return { action: 'cancel' }
    const request = readElicitation('input', params)
    const { promise, resolve } = Promise.withResolvers<ElicitResult>()
    const cancel = () => resolve({ action: 'cancel' })
    const timer = setTimeout(cancel, inputMaxMs).unref()
    signal.addEventListener('abort', cancel)
    this.#input = { request, answer: resolve }
    this.#isInputNew = true
    this.#wake?.()
    const result = await promise
    clearTimeout(timer)
    signal.removeEventListener('abort', cancel)
    return result
  }

  #take(): CallEvent | undefined {
    if (this.#progress !== undefined) {
      const text = this.#progress
      this.#progress = undefined
      return { kind: 'progress', text }
    }
    if (this.#isInputNew && this.#input !== undefined) {
      this.#isInputNew = false
      return { kind: 'input', request: this.#input.request }
    }
    return this.#end
  }

  async #run(
    sessions: Sessions,
    session: McpSession,
    call: Omit<ToolCall, 'progress' | 'signal'>,
  ): Promise<void> {
    const progress = (text: string) => {
      this.#progress = text
      this.#wake?.()
    }
    using _elicitation = sessions.connect(session, this)
    try {
      const answer = await session.callTool({ ...call, progress, signal: this.#abort.signal })
      this.#end = { kind: 'answer', answer }
    } catch (error) {
      this.#end = { kind: 'failure', error }
    }
    this.#wake?.()
  }
}

function elicitResult({ action, content }: NonNullable<InputResponses[string]>): ElicitResult {
  if (content === undefined) return { action }
  const simple: NonNullable<ElicitResult['content']> = {}
  for (const [name, value] of Object.entries(content)) {
    if (Array.isArray(value)) simple[name] = value.map(String)
    else if (value !== null && typeof value !== 'object') simple[name] = value
  }
  return { action, content: simple }
}

/** The calls that wait for input of the caller, by the ID of our task. A restart of the process ends them. */
export class WaitingCalls implements Disposable {
  readonly #calls = new Map<string, OpenCall>()

  set(taskId: string, call: OpenCall): void {
    this.#calls.set(taskId, call)
  }

  take(taskId: string): OpenCall | undefined {
    const call = this.#calls.get(taskId)
    this.#calls.delete(taskId)
    return call
  }

  cancel(taskId: string): void {
    this.take(taskId)?.cancel()
  }

  [Symbol.dispose](): void {
    for (const taskId of this.#calls.keys()) this.cancel(taskId)
  }
}
