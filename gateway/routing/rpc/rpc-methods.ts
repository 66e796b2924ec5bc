import type { Scope } from '@parley/kit/auth/caller'

/** Where a call without a named agent goes: by its message, its task or its context, to all, or nowhere. */
export type Destination = 'message' | 'task' | 'context' | 'tasks' | 'contexts' | 'gateway'

/** The methods of `POST /` on the gateway; a test holds names and scopes equal to those of an agent. */
export const rpcMethods: ReadonlyMap<string, { scope: Scope; destination: Destination }> = new Map([
  ['message/send', { scope: 'agent:write', destination: 'message' }],
  ['message/stream', { scope: 'agent:write', destination: 'message' }],
  ['tasks/get', { scope: 'agent:read', destination: 'task' }],
  ['tasks/list', { scope: 'agent:read', destination: 'tasks' }],
  ['tasks/cancel', { scope: 'agent:write', destination: 'task' }],
  ['tasks/feedback', { scope: 'agent:write', destination: 'task' }],
  ['tasks/events', { scope: 'agent:read', destination: 'task' }],
  ['tasks/resubscribe', { scope: 'agent:read', destination: 'task' }],
  ['tasks/pushNotificationConfig/set', { scope: 'agent:write', destination: 'task' }],
  ['tasks/pushNotificationConfig/get', { scope: 'agent:read', destination: 'task' }],
  ['tasks/pushNotificationConfig/list', { scope: 'agent:read', destination: 'task' }],
  ['tasks/pushNotificationConfig/delete', { scope: 'agent:write', destination: 'task' }],
  ['contexts/list', { scope: 'agent:read', destination: 'contexts' }],
  ['contexts/clear', { scope: 'agent:write', destination: 'context' }],
  ['agent/getAuthenticatedExtendedCard', { scope: 'agent:read', destination: 'gateway' }],
])
