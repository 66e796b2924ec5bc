import { clearContext, listContexts } from './contexts.ts'
import { getExtendedCard } from './extended-card.ts'
import { sendMessage } from './message-send.ts'
import { resubscribe, streamMessage } from './message-stream.ts'
import type { Method } from './method.ts'
import { deletePushConfig, getPushConfig, listPushConfigs, setPushConfig } from './push-config.ts'
import { listTaskEvents } from './task-events.ts'
import { cancelTask, getTask, giveFeedback, listTasks } from './tasks.ts'

/** The methods of the JSON-RPC API with their scopes (spec/methods.md#method-table). */
export const methods: ReadonlyMap<string, Method> = new Map<string, Method>([
  ['message/send', { scope: 'agent:write', takesSignature: true, run: sendMessage }],
  ['message/stream', { scope: 'agent:write', takesSignature: true, run: streamMessage }],
  ['tasks/get', { scope: 'agent:read', run: getTask }],
  ['tasks/list', { scope: 'agent:read', run: listTasks }],
  ['tasks/cancel', { scope: 'agent:write', takesSignature: true, run: cancelTask }],
  ['tasks/feedback', { scope: 'agent:write', takesSignature: true, run: giveFeedback }],
  ['tasks/events', { scope: 'agent:read', run: listTaskEvents }],
  ['tasks/resubscribe', { scope: 'agent:read', run: resubscribe }],
  ['tasks/pushNotificationConfig/set', { scope: 'agent:write', run: setPushConfig }],
  ['tasks/pushNotificationConfig/get', { scope: 'agent:read', run: getPushConfig }],
  ['tasks/pushNotificationConfig/list', { scope: 'agent:read', run: listPushConfigs }],
  ['tasks/pushNotificationConfig/delete', { scope: 'agent:write', run: deletePushConfig }],
  ['contexts/list', { scope: 'agent:read', run: listContexts }],
  ['contexts/clear', { scope: 'agent:write', run: clearContext }],
  ['agent/getAuthenticatedExtendedCard', { scope: 'agent:read', run: getExtendedCard }],
])
