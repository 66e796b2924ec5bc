import type { TaskRecord } from '@parley/engine/store/store'
import type { Registration } from '@parley/engine/webhooks/registrations'
import { ParleyError } from '@parley/wire/errors'
import type { SendMessage } from '@parley/wire/model/call'
import { isTerminal } from '@parley/wire/model/task'
import type { Services } from './method.ts'

/** A message's webhook that has been checked but not yet registered. */
export interface InlineWebhook {
  /** Must be called before the first commit of a new task or before the commit that continues a paused task. */
  register: (task: TaskRecord, isNew: boolean) => Promise<Registration>
}

/**
 * Refuses the message if `tasks/pushNotificationConfig/set` would refuse its webhook (spec/webhooks.md#registration).
 * @throws ParleyError PushNotificationNotSupported, InvalidParams
 */
export async function checkInlineWebhook(
  { registrations }: Services,
  configuration: SendMessage['configuration'],
): Promise<InlineWebhook | undefined> {
  const config = configuration?.pushNotificationConfig
  if (config === undefined) return undefined
  if (registrations === undefined) throw new ParleyError('PushNotificationNotSupported')
  await registrations.check(config)
  const longRunning = configuration?.longRunning ?? false
  return {
    register: (task, isNew) =>
      registrations.set(task, config, {
        longRunning,
        settled: task.events.length,
        open: !isTerminal(task.status.state),
        isNew,
      }),
  }
}
