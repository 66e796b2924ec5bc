import type { PushConfigInput } from '../../model/call.ts'
import type { TaskEvent } from '../../model/event.ts'
import { eventOut } from './events.ts'
import { mediaType } from './name.ts'

/** A delivery is a StreamResponse, as in a stream. */
export function writeWebhook(event: TaskEvent): string {
  return JSON.stringify(eventOut(event))
}

/** The credentials of the config, or else its token. */
export function webhookHeaders({
  token,
  credentials,
}: Pick<PushConfigInput, 'token' | 'credentials'>): Record<string, string> {
  const type = { 'content-type': mediaType }
  if (credentials !== undefined && credentials.credentials !== '')
    return { ...type, authorization: `${credentials.scheme} ${credentials.credentials}` }
  return token === undefined ? type : { ...type, 'x-a2a-notification-token': token }
}
