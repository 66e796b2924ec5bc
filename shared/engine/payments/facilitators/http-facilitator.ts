import { boundedText } from '@parley/kit/net/bounded-text'
import { z } from 'zod'
import { payloadOf, requirementsOf } from '../x402/x402.ts'
import {
  codeOf,
  type Facilitator,
  type LookupResult,
  type MatchedTransfer,
  type Settlement,
  settlementOf,
  type VerifyResult,
} from './facilitator.ts'

const answerMaxBytes = 64 * 1024

const verifyAnswer = z.object({ isValid: z.boolean(), invalidReason: z.string().nullish() })
const optionalText = z
  .string()
  .nullish()
  .transform((text) => text ?? undefined)
const settleAnswer = z.object({
  success: z.boolean(),
  errorReason: optionalText,
  transaction: optionalText,
  network: optionalText,
  payer: optionalText,
})

/** A look at the chain itself, where one is configured beside the facilitator. */
export interface ChainLookUp extends AsyncDisposable {
  lookUp(offered: MatchedTransfer, signal: AbortSignal): Promise<LookupResult>
}

/** An x402 facilitator over HTTP (`/verify`, `/settle`), as the operator has configured it. */
export class HttpFacilitator implements Facilitator {
  readonly sandbox = false
  readonly #url: string
  readonly #chain: ChainLookUp | undefined
  constructor(options: { url: string; chain?: ChainLookUp | undefined }) {
    this.#url = options.url.replace(/\/+$/, '')
    this.#chain = options.chain
  }

  async verify(offered: MatchedTransfer, signal: AbortSignal): Promise<VerifyResult> {
    const { status, json } = await this.#post('verify', offered, signal)
    const answer = verifyAnswer.safeParse(json)
    // A server that fails has not said no, whatever its body looks like.
    if (!answer.success || status >= 500) throw new Error(`the facilitator answered HTTP ${status}`)
    if (answer.data.isValid && status < 300) return { valid: true }
    return { valid: false, reason: codeOf(answer.data.invalidReason) }
  }

  settle(offered: MatchedTransfer, signal: AbortSignal): Promise<Settlement> {
    return this.#ask(offered, signal, false)
  }

  /** Where no chain can be asked, asking again is the only way to know: one transfer is made once. */
  async lookUp(offered: MatchedTransfer, signal: AbortSignal): Promise<LookupResult> {
    const seen = await this.#chain?.lookUp(offered, signal)
    if (seen !== undefined && seen.state !== 'open') return seen
    const told = await this.#ask(offered, signal, true)
    return seen === undefined || told.state === 'settled' ? told : seen
  }

  async #ask(offered: MatchedTransfer, signal: AbortSignal, again: boolean): Promise<Settlement> {
    try {
      const { status, json } = await this.#post('settle', offered, signal)
      const answer = settleAnswer.safeParse(json)
      if (!answer.success) return { state: 'unknown', reason: 'malformed_answer' }
      if (status >= 500 || (answer.data.success && status >= 300))
        return { state: 'unknown', reason: `http_${status}` }
      return settlementOf(answer.data, offered, again)
    } catch (error) {
      return {
        state: 'unknown',
        reason: (error as Error).name === 'TimeoutError' ? 'timeout' : 'unreachable',
      }
    }
  }

  async #post(path: string, { terms, transfer }: MatchedTransfer, signal: AbortSignal) {
    const response = await fetch(`${this.#url}/${path}`, {
      method: 'POST',
      redirect: 'error',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify({
        x402Version: 2,
        paymentPayload: payloadOf(terms, transfer),
        paymentRequirements: requirementsOf(terms),
      }),
      signal,
    })
    return { status: response.status, json: await jsonOf(response) }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#chain?.[Symbol.asyncDispose]()
  }
}

async function jsonOf(response: Response): Promise<unknown> {
  const text = await boundedText(response.body, answerMaxBytes)
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
