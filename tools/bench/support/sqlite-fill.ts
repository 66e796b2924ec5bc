/** Writes completed tasks directly to the file of an embedded store, much faster than creating them. */
import { DatabaseSync } from 'node:sqlite'
import { sampleTask } from './sample-task.ts'

export const ownersCount = 100
export const ownerOf = (number: number) =>
  `did:parley:bench:agent:${String(number % ownersCount).padStart(4, '0')}`

/** The ids of these tasks increase, as the server's ids do. */
export const taskIdOf = (number: number) => `${hex(number, 8)}-0000-7000-8000-${hex(number * 7919, 12)}`
export const contextIdOf = (number: number) => `${hex(Math.floor(number / 4), 8)}-0000-7000-9000-000000000000`
const hex = (value: number, digits: number) => value.toString(16).padStart(digits, '0').slice(-digits)

const insertTask = `INSERT INTO tasks (id, owner, context_id, state, created_at, updated_at, version, large, body,
  status_time) VALUES (?, ?, ?, 'completed', ?, ?, 2, 0, ?, ?)`
const insertContext = `INSERT INTO contexts (id, owner, created_at, updated_at, task_count) VALUES (?, ?, ?, ?, 1)
  ON CONFLICT (id) DO UPDATE SET task_count = task_count + 1, updated_at = excluded.updated_at`

/** Writes tasks `from` to `to - 1`, four per context. The file must have its schema and not be open elsewhere. */
export function fillTasks(file: string, from: number, to: number): void {
  using database = new DatabaseSync(file)
  database.exec('PRAGMA journal_mode = DELETE; PRAGMA synchronous = OFF; PRAGMA cache_size = -262144; BEGIN')
  const [task, context] = [database.prepare(insertTask), database.prepare(insertContext)]
  for (let number = from; number < to; number += 1) {
    const [id, contextId] = [taskIdOf(number), contextIdOf(number)]
    // All tasks in a context have the same owner.
    const owner = ownerOf(Math.floor(number / 4))
    const at = new Date(1.7e12 + number * 10).toISOString().replace('Z', '000+00:00')
    task.run(id, owner, contextId, at, at, sampleTask(id, contextId, at), at)
    context.run(contextId, owner, at, at)
  }
  database.prepare("UPDATE ended_counts SET count = count + ? WHERE state = 'completed'").run(to - from)
  database.exec('COMMIT')
}

/** Moves one task of `every` into the state. */
export function setState(
  file: string,
  state: 'failed' | 'input-required',
  { every, offset }: { every: number; offset: number },
): void {
  using database = new DatabaseSync(file)
  database.exec('PRAGMA journal_mode = DELETE; PRAGMA synchronous = OFF')
  database.prepare('UPDATE tasks SET state = ? WHERE seq % ? = ?').run(state, every, offset)
}
