/**
 * Everything that the service does over JSON-RPC, with the scope of the token that it requires and what it is about.
 * A dialect gives each operation a method name; a gateway routes a call by its target.
 */
export const operations = {
  sendMessage: { scope: 'agent:write', target: 'message' },
  streamMessage: { scope: 'agent:write', target: 'message' },
  getTask: { scope: 'agent:read', target: 'task' },
  listTasks: { scope: 'agent:read', target: 'tasks' },
  cancelTask: { scope: 'agent:write', target: 'task' },
  giveFeedback: { scope: 'agent:write', target: 'task' },
  listTaskEvents: { scope: 'agent:read', target: 'task' },
  resubscribe: { scope: 'agent:read', target: 'task' },
  setPushConfig: { scope: 'agent:write', target: 'task' },
  getPushConfig: { scope: 'agent:read', target: 'task' },
  listPushConfigs: { scope: 'agent:read', target: 'task' },
  deletePushConfig: { scope: 'agent:write', target: 'task' },
  listContexts: { scope: 'agent:read', target: 'contexts' },
  clearContext: { scope: 'agent:write', target: 'context' },
  getExtendedCard: { scope: 'agent:read', target: 'server' },
} as const satisfies Record<string, OperationRow>

interface OperationRow {
  scope: 'agent:read' | 'agent:write'
  target: Target
}

/** What a call is about: one message, task or context, all tasks or contexts of the caller, or the server itself. */
export type Target = 'message' | 'task' | 'context' | 'tasks' | 'contexts' | 'server'

export type Operation = keyof typeof operations
