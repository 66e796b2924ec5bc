import { type Role, type TaskState, taskStates } from '../../model/task.ts'
import { enumOf } from './proto-json.ts'

/** The names of the protocol in the order of their numbers, with the states of the model. */
const states = [
  ['TASK_STATE_UNSPECIFIED', undefined],
  ['TASK_STATE_SUBMITTED', 'submitted'],
  ['TASK_STATE_WORKING', 'working'],
  ['TASK_STATE_COMPLETED', 'completed'],
  ['TASK_STATE_FAILED', 'failed'],
  ['TASK_STATE_CANCELED', 'canceled'],
  ['TASK_STATE_INPUT_REQUIRED', 'input-required'],
  ['TASK_STATE_REJECTED', 'rejected'],
  ['TASK_STATE_AUTH_REQUIRED', 'auth-required'],
] as const satisfies [string, TaskState | undefined][]

const roles = [
  ['ROLE_UNSPECIFIED', undefined],
  ['ROLE_USER', 'user'],
  ['ROLE_AGENT', 'agent'],
] as const satisfies [string, Role | undefined][]

export const stateIn = enumOf<TaskState>(states)
export const roleIn = enumOf<Role>(roles)

/** The protocol has no state for a payment or a bid; the agent waits for its caller in both. */
const shownAs = (state: TaskState): TaskState =>
  states.some(([, known]) => known === state) ? state : 'input-required'

const names = new Map(
  taskStates.map((state) => [state, states.find(([, known]) => known === shownAs(state))?.[0]]),
)

export function stateOut(state: TaskState): string {
  return names.get(state) ?? 'TASK_STATE_UNSPECIFIED'
}

/** Returns every state that is written as this one. */
export function statesShownAs(shown: TaskState): TaskState[] {
  return taskStates.filter((state) => shownAs(state) === shown)
}

/** The protocol has no system messages and no `assistant`; both are from the server. */
export function roleOut(role: Role): string {
  return role === 'user' ? 'ROLE_USER' : 'ROLE_AGENT'
}
