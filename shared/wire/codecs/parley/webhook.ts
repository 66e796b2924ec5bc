import type { PushConfigInput } from '../../model/call.ts'
import type { TaskEvent } from '../../model/event.ts'
import { eventOut } from './events.ts'

/** A delivery carries the event in the same form as a stream (spec/events.md#envelope). */
export function writeWebhook(event: TaskEvent): string {
  return JSON.stringify(eventOut(event))
}

/** Sends the token as a bearer token and also in the header that A2A receivers check. */
export function webhookHeaders({ token }: Pick<PushConfigInput, 'token'>): Record<string, string> {
  const type = { 'content-type': 'application/json' }
  return token === undefined
    ? type
    : { ...type, authorization: `Bearer ${token}`, 'x-a2a-notification-token': token }
}
