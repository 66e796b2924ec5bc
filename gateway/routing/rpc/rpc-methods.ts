import type { Scope } from '@parley/kit/auth/caller'

/** Where a call without a named agent goes: by its message, its task or its context, to all, or nowhere. */
export type Aim = 'message' | 'task' | 'context' | 'tasks' | 'contexts' | 'gateway'

/** The methods of `POST /` on the gateway; a test holds names and scopes equal to those of an agent. */
export const rpcMethods: ReadonlyMap<string, { scope: Scope; aim: Aim }> = new Map([
  ['message/send', { scope: 'agent:write', aim: 'message' }],
  ['message/stream', { scope: 'agent:write', aim: 'message' }],
  ['tasks/get', { scope: 'agent:read', aim: 'task' }],
  ['tasks/list', { scope: 'agent:read', aim: 'tasks' }],
  ['tasks/cancel', { scope: 'agent:write', aim: 'task' }],
  ['tasks/feedback', { scope: 'agent:write', aim: 'task' }],
  ['tasks/events', { scope: 'agent:read', aim: 'task' }],
  ['tasks/resubscribe', { scope: 'agent:read', aim: 'task' }],
  ['tasks/pushNotificationConfig/set', { scope: 'agent:write', aim: 'task' }],
  ['tasks/pushNotificationConfig/get', { scope: 'agent:read', aim: 'task' }],
  ['tasks/pushNotificationConfig/list', { scope: 'agent:read', aim: 'task' }],
  ['tasks/pushNotificationConfig/delete', { scope: 'agent:write', aim: 'task' }],
  ['contexts/list', { scope: 'agent:read', aim: 'contexts' }],
  ['contexts/clear', { scope: 'agent:write', aim: 'context' }],
  ['agent/getAuthenticatedExtendedCard', { scope: 'agent:read', aim: 'gateway' }],
])
