import { ParleyError } from '../jsonrpc/errors.ts'
import type { Answer } from './method.ts'

/**
 * The four `tasks/pushNotificationConfig/*` methods of an agent without push notifications: -32005 with the
 * push-specific name (specification, "Errors", note 1).
 */
export async function pushNotSupported(): Promise<Answer> {
  throw new ParleyError('ContentTypeNotSupported', {
    message: 'Push notifications are not supported',
    data: { name: 'PushNotificationNotSupportedError' },
  })
}
