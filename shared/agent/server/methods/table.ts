import type { Operation } from '@parley/wire/model/operation'
import { getExtendedCard } from './agent-card.ts'
import { clearContext, listContexts } from './contexts.ts'
import { sendMessage } from './message-send.ts'
import { resubscribe, streamMessage } from './message-stream.ts'
import type { Method } from './method.ts'
import { deletePushConfig, getPushConfig, listPushConfigs, setPushConfig } from './push-config.ts'
import { listTaskEvents } from './task-events.ts'
import { cancelTask, getTask, giveFeedback, listTasks } from './tasks.ts'

/** Every operation of an agent. The caller's dialect defines the method names and the format of the params. */
export const methods: { readonly [O in Operation]: Method<O> } = {
  sendMessage: { takesSignature: true, run: sendMessage },
  streamMessage: { takesSignature: true, run: streamMessage },
  getTask: { run: getTask },
  listTasks: { run: listTasks },
  cancelTask: { takesSignature: true, run: cancelTask },
  giveFeedback: { takesSignature: true, run: giveFeedback },
  listTaskEvents: { run: listTaskEvents },
  resubscribe: { run: resubscribe },
  setPushConfig: { run: setPushConfig },
  getPushConfig: { run: getPushConfig },
  listPushConfigs: { run: listPushConfigs },
  deletePushConfig: { run: deletePushConfig },
  listContexts: { run: listContexts },
  clearContext: { run: clearContext },
  getExtendedCard: { run: getExtendedCard },
}
