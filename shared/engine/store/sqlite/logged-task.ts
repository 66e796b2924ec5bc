import type { TaskState } from '@parley/wire/model/task'
import type { TaskRow } from './record.ts'

/** A row of `tasks`, with the name for its context if it creates the context. */
export interface LoggedTask extends TaskRow {
  state: TaskState
  status_time: string
  context_name: string | null
}

/** The columns of a logged task before its body, in the order of the log. */
const columns = [
  'seq',
  'id',
  'owner',
  'context_id',
  'context_name',
  'state',
  'status_time',
  'created_at',
  'updated_at',
  'version',
  'lease_holder',
  'lease_until',
  'due_at',
  'large',
] as const satisfies (keyof LoggedTask)[]

const texts = [
  'id',
  'owner',
  'context_id',
  'state',
  'status_time',
  'created_at',
  'updated_at',
  'body',
] as const
const integers = ['seq', 'version', 'large'] as const
const optionalIntegers = ['lease_until', 'due_at'] as const

/**
 * Checks that the tables can store the task. They receive it after the write has resolved, when its caller could not be
 * told. @throws TypeError
 */
export function requireStorable(task: LoggedTask): void {
  const isStorable =
    texts.every((column) => typeof task[column] === 'string') &&
    integers.every((column) => Number.isSafeInteger(task[column])) &&
    optionalIntegers.every((column) => task[column] === null || Number.isSafeInteger(task[column]))
  if (!isStorable) throw new TypeError('The tables cannot store this task')
}

/** How many tasks, and how many characters, one record of the log contains. A single task may be longer. */
const [tasksMax, recordMaxChars] = [1000, 4 * 1024 * 1024]

/** Returns how many of these tasks the next record contains. */
export function recordLength(queue: readonly { task: LoggedTask }[]): number {
  let chars = 0
  for (let at = 0; at < Math.min(queue.length, tasksMax); at += 1) {
    chars += queue[at]?.task.body.length ?? 0
    if (chars > recordMaxChars) return Math.max(1, at)
  }
  return tasksMax
}

/**
 * Returns a record of the log: one line of JSON with the columns of each task and the length of its body, then the bodies,
 * which need not be parsed to enter the tables.
 */
export function encodeTasks(tasks: readonly LoggedTask[]): string {
  const head = tasks.map((task) => [...columns.map((column) => task[column]), task.body.length])
  let text = `${JSON.stringify(head)}\n`
  for (const { body } of tasks) text += body
  return text
}

/** Returns the tasks of a record. */
export function* decodeTasks(record: string): Iterable<LoggedTask> {
  const headEnds = record.indexOf('\n')
  const head: unknown[][] = JSON.parse(record.slice(0, headEnds))
  let at = headEnds + 1
  for (const values of head) {
    const task = Object.fromEntries(columns.map((column, index) => [column, values[index]]))
    const ends = at + Number(values.at(-1))
    yield { ...(task as unknown as LoggedTask), body: record.slice(at, ends) }
    at = ends
  }
}
