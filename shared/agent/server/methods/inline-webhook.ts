import type { TaskRecord } from '@parley/engine/store/store'
import type { Registration } from '@parley/engine/webhooks/registrations'
import type { MessageSend } from '@parley/wire/codecs/parley/params'
import { ParleyError } from '@parley/wire/errors'
import { isTerminal } from '@parley/wire/model/task'
import type { Services } from './method.ts'

/** The webhook of a message, checked and not yet in force. */
export interface InlineWebhook {
  /** Before the first commit of a new task, and before that which continues a paused one. */
  register: (task: TaskRecord, isNew: boolean) => Promise<Registration>
}

/**
 * Registered before the task starts. A config that `set` would refuse makes the whole send fail (spec/webhooks.md#registration).
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
