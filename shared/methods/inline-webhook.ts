import { ParleyError } from '../jsonrpc/errors.ts'
import type { MessageSend } from '../protocol/params.ts'
import { isTerminal } from '../protocol/task.ts'
import type { TaskRecord } from '../store/store.ts'
import type { Registration } from '../webhooks/registrations.ts'
import type { Services } from './method.ts'

/** The webhook of a message, checked and not yet in force. */
export interface InlineWebhook {
  /** Before the first commit of a new task, and before that which continues a paused one. */
  register: (task: TaskRecord, isNew: boolean) => Promise<Registration>
}

/**
 * Specification, "message/send": registered before the task starts. One that `set` would refuse refuses the whole send.
 * @throws ParleyError PushNotificationNotSupported, InvalidParams
 */
export async function inlineWebhook(
  { registrations }: Services,
  configuration: MessageSend['configuration'],
): Promise<InlineWebhook | undefined> {
  const wanted = configuration?.pushNotificationConfig
  if (wanted === undefined) return undefined
  if (registrations === undefined) throw new ParleyError('PushNotificationNotSupported')
  await registrations.check(wanted)
  const longRunning = configuration?.longRunning ?? false
  return {
    register: (task, isNew) =>
      registrations.set(task, wanted, {
        longRunning,
        settled: task.events.length,
        open: !isTerminal(task.status.state),
        isNew,
      }),
  }
}
