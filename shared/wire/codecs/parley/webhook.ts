import type { TaskEvent } from '../../model/event.ts'
import type { WebhookBody } from '../codec.ts'
import { eventOut } from './events.ts'

/** A delivery carries the event as a stream does (spec/events.md#envelope). */
export function writeWebhook(event: TaskEvent): WebhookBody {
  return { contentType: 'application/json', json: JSON.stringify(eventOut(event)) }
}
