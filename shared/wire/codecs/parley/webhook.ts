import type { TaskEvent } from '../../model/event.ts'
import { eventOut } from './events.ts'

/** A delivery carries the event as a stream does (spec/events.md#envelope). */
export function writeWebhook(event: TaskEvent): string {
  return JSON.stringify(eventOut(event))
}

/** The token is the bearer credential, repeated in the header that receivers of A2A check. */
export function webhookHeaders(token: string | undefined): Record<string, string> {
  const type = { 'content-type': 'application/json' }
  return token === undefined
    ? type
    : { ...type, authorization: `Bearer ${token}`, 'x-a2a-notification-token': token }
}
