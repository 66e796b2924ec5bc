import { cleanText } from '@parley/wire/model/clean-text'
import type { JsonObject, Part, Task } from '@parley/wire/model/task'
import { plainText } from './task-answer.ts'

/** Where and what to pay, for a task that waits for a payment. */
export interface PaymentPage {
  url: string
}

/**
 * Returns the pause of a task as the text of the assistant. It ends with the id of the task. Clients send this text back with the
 * user's answer, so that the answer reaches the task without any other state (spec/openai.md#pauses).
 */
export function questionOf(task: Task, page?: PaymentPage): string {
  return [promptOf(task), `${nextStep(task, page)} (task ${task.id})`]
    .filter((text) => text !== '')
    .join('\n\n')
}

function promptOf({ status }: Task): string {
  return plainText(status.message?.parts ?? []).trim()
}

function nextStep(task: Task, page: PaymentPage | undefined): string {
  const data = dataOf(task)
  switch (task.status.state) {
    case 'auth-required':
      return 'Complete this authorization, then reply to continue.'
    case 'payment-required':
      return `The price is ${priceOf(task)}. ${page === undefined ? 'Pay it' : `Pay at ${page.url}`}, then reply to continue.`
    case 'negotiation-bid-submitted':
      return `The agent offers to do this for ${textIn(data, 'amount')}. Reply "yes" to accept or "no" to decline.`
    default:
      return 'Reply to continue.'
  }
}

/** Returns the price as an amount with its asset and network. */
function priceOf(task: Task): string {
  const { accepts } = task.status.payment?.required ?? dataOf(task)
  const [terms] = Array.isArray(accepts) ? accepts : []
  const amount = textIn(dataOf(task), 'amount')
  if (typeof terms !== 'object' || terms === null || Array.isArray(terms)) return amount
  const { extra } = terms
  const name =
    typeof extra === 'object' && extra !== null && !Array.isArray(extra) ? textIn(extra, 'name') : ''
  return `${amount} ${name} (${textIn(terms, 'asset')}) on ${textIn(terms, 'network')}`
}

function dataOf({ status }: Task): JsonObject {
  const parts = status.message?.parts ?? []
  return Object.assign({}, ...parts.flatMap((part) => (part.kind === 'data' ? [part.data] : [])))
}

function textIn(data: JsonObject, key: string): string {
  const value = data[key]
  return typeof value === 'string' ? cleanText(value).slice(0, 200) : '?'
}

/** Returns the id of the task to which the text of the assistant belongs. */
export function taskIdIn(text: string): string | undefined {
  return /\(task ([\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})\)$/i
    .exec(text.trimEnd().slice(-60))?.[1]
    ?.toLowerCase()
}

/**
 * Whether the text of the assistant is the question of this task. An agent that writes the id of another task of the caller into
 * its answer must not receive the caller's next message there. The question of a bid includes the offer, so that the caller has
 * seen it. The address of a payment page can change, and a payment is not made by a message.
 */
export function isQuestionOf(task: Task, text: string): boolean {
  const condensed = (one: string) => one.replace(/\s+/g, ' ').trim()
  const question = task.status.state === 'payment-required' ? promptOf(task) : questionOf(task)
  return condensed(text).includes(condensed(question))
}

const accepting = new Set(['yes', 'y', 'ok', 'okay', 'accept', 'accepted', 'agreed'])
const declining = new Set(['no', 'n', 'decline', 'declined', 'reject'])

/**
 * Returns the parts that answer the task; undefined if a bid is neither accepted nor declined. A text with more words, such as
 * "yes, but only for 0.2", is neither.
 */
export function answerTo({ status }: Task, parts: readonly Part[]): Part[] | undefined {
  if (status.state !== 'negotiation-bid-submitted') return [...parts]
  const words = plainText(parts)
    .toLowerCase()
    .split(/[\s.,!]+/)
    .filter((word) => word !== '')
  const said = words.join(' ').replace(/ (?:please|thanks|thank you)$/, '')
  const accepts = accepting.has(said)
  return accepts || declining.has(said) ? [{ kind: 'data', data: { accept: accepts } }] : undefined
}
