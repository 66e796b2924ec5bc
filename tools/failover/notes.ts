import { appendFileSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'

/** A handler's note that the work for a message began or was done in a task. */
export interface Note {
  what: 'begun' | 'done'
  taskId: string
}

export interface Noted {
  folder: string
  messageId: string
  taskId: string
}

/** Writes a note that survives a kill: a line in the message's file that is written immediately. */
export function note(what: Note['what'], { folder, messageId, taskId }: Noted): void {
  appendFileSync(path.join(folder, messageId), `${what} ${taskId}\n`)
}

/** Whether an earlier run of the same task has already done its work. */
export function doneBefore({ folder, messageId, taskId }: Noted): boolean {
  return notesIn(path.join(folder, messageId)).some((one) => one.what === 'done' && one.taskId === taskId)
}

/** Reads all notes, by message id. */
export function readNotes(folder: string): Map<string, Note[]> {
  return new Map(readdirSync(folder).map((messageId) => [messageId, notesIn(path.join(folder, messageId))]))
}

function notesIn(file: string): Note[] {
  if (!existsSync(file)) return []
  const lines = readFileSync(file, 'utf8').split('\n')
  return lines.flatMap((line) => {
    const [what, taskId] = line.split(' ')
    return (what === 'begun' || what === 'done') && taskId !== undefined ? [{ what, taskId }] : []
  })
}
