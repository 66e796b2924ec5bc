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
  type TransferSource,
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

/** Looks up transfers on a chain that is configured in addition to the facilitator. */
export interface ChainLookUp extends AsyncDisposable {
  lookUp(offered: MatchedTransfer, signal: AbortSignal): Promise<LookupResult>
  readonly transfers?: TransferSource | undefined
}

/** The operator's x402 facilitator, called over HTTP (`/verify`, `/settle`). */
export class HttpFacilitator implements Facilitator {
  readonly sandbox = false
  readonly transfers: TransferSource | undefined
  readonly #url: string
  readonly #chain: ChainLookUp | undefined
  constructor(options: { url: string; chain?: ChainLookUp | undefined }) {
    this.#url = options.url.replace(/\/+$/, '')
    this.#chain = options.chain
    this.transfers = options.chain?.transfers
  }

  async verify(offered: MatchedTransfer, signal: AbortSignal): Promise<VerifyResult> {
    const { status, json } = await this.#post('verify', offered, signal)
    const answer = verifyAnswer.safeParse(json)
    // A server error is not a refusal, regardless of its body.
    if (!answer.success || status >= 500) throw new Error(`the facilitator responded with HTTP ${status}`)
    if (answer.data.isValid && status < 300) return { valid: true }
    return { valid: false, reason: codeOf(answer.data.invalidReason) }
  }

  settle(offered: MatchedTransfer, signal: AbortSignal): Promise<Settlement> {
    return this.#settle(offered, signal, false)
  }

  /**
   * Without a chain, only a repeated settlement can reveal the outcome. The transfer happens at most once.
   */
  async lookUp(offered: MatchedTransfer, signal: AbortSignal): Promise<LookupResult> {
    const onChain = await this.#chain?.lookUp(offered, signal)
    if (onChain !== undefined && onChain.state !== 'open') return onChain
    const repeated = await this.#settle(offered, signal, true)
    return onChain === undefined || repeated.state === 'settled' ? repeated : onChain
  }

  async #settle(offered: MatchedTransfer, signal: AbortSignal, isRetry: boolean): Promise<Settlement> {
    try {
      const { status, json } = await this.#post('settle', offered, signal)
      const answer = settleAnswer.safeParse(json)
      if (!answer.success) return { state: 'unknown', reason: 'malformed_answer' }
      if (status >= 500 || (answer.data.success && status >= 300))
        return { state: 'unknown', reason: `http_${status}` }
      return settlementOf(answer.data, offered, isRetry)
    } catch (error) {
      return {
        state: 'unknown',
        reason: error instanceof Error && error.name === 'TimeoutError' ? 'timeout' : 'unreachable',
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
