import { type PaymentPurpose, purposeOut, readSession } from '@parley/wire/codecs/parley/payments'
import { ParleyError } from '@parley/wire/errors'
import type { PaymentSession } from '@parley/wire/model/payment'
import type { RequestSender } from './inner-requests.ts'
import { jsonOf, refuseError } from './rpc-calls.ts'

/** Starts a payment session (spec/payments.md#start-a-session). @throws ParleyError */
export function startPaymentSession(sender: RequestSender, agent: string, purpose: PaymentPurpose) {
  const body = JSON.stringify(purposeOut(purpose))
  return requestSession(sender, { method: 'POST', path: pathAt(agent, 'start-payment-session'), body })
}

/** Reads a payment session (spec/payments.md#session-status). @throws ParleyError */
export function findPaymentSession(sender: RequestSender, agent: string, sessionId: string) {
  const path = pathAt(agent, `payment-status/${encodeURIComponent(sessionId)}`)
  return requestSession(sender, { method: 'GET', path, body: '' })
}

const pathAt = (agent: string, route: string) => `/agents/${encodeURIComponent(agent)}/api/${route}`

async function requestSession(
  sender: RequestSender,
  request: { method: 'GET' | 'POST'; path: string; body: string },
): Promise<PaymentSession> {
  using response = await sender.send({ ...request, headers: {}, signal: undefined })
  const answer = await jsonOf(response, sender)
  refuseError(response, answer)
  const session = readSession(answer)
  if (session === undefined) throw new ParleyError('InvalidAgentResponse')
  return session
}
