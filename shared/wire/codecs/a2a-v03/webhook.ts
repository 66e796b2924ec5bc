import type { PushConfigInput } from '../../model/call.ts'
import type { TaskEvent } from '../../model/event.ts'
import type { Task } from '../../model/task.ts'
import { taskOut } from './task.ts'

/** A delivery carries the whole task, as the SDKs' servers send it and their receivers expect it. */
export function writeWebhook(_event: TaskEvent, task: Task): string {
  return JSON.stringify(taskOut(task))
}

export function webhookHeaders({
  token,
  credentials,
}: Pick<PushConfigInput, 'token' | 'credentials'>): Record<string, string> {
  return {
    'content-type': 'application/json',
    ...(token !== undefined && { 'x-a2a-notification-token': token }),
    ...(credentials && { authorization: `${credentials.scheme} ${credentials.credentials}` }),
  }
}
