import { hash } from 'node:crypto'
import { uuidOfHash, uuidPattern } from '@parley/wire/model/uuid'

/** The ids of this API contain the ids of tasks, so that nothing has to be stored (docs/decisions/0038). */

const compact = (taskId: string) => taskId.replaceAll('-', '')

function expanded(hex: string): string | undefined {
  const id = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5').toLowerCase()
  return uuidPattern.test(id) ? id : undefined
}

export const completionId = (taskId: string) => `chatcmpl-${compact(taskId)}`

/** @param turn the number of the user's message in the task, from 1 */
export const responseId = (taskId: string, turn: number) => `resp_${compact(taskId)}_${turn}`

export function parseResponseId(id: string): { taskId: string; turn: number } | undefined {
  const [, hex = '', turn] = /^resp_([\da-f]{32})_([1-9]\d{0,4})$/i.exec(id) ?? []
  const taskId = expanded(hex)
  return taskId === undefined ? undefined : { taskId, turn: Number(turn) }
}

/** A part of the result of a task. `artifact` is its position, or `m` for the message of a task without artifacts. */
export interface FileAddress {
  taskId: string
  artifact: number | 'm'
  part: number
}

export const fileId = ({ taskId, artifact, part }: FileAddress) =>
  `file-${compact(taskId)}-${artifact}-${part}`

export function parseFileId(id: string): FileAddress | undefined {
  const [, hex = '', artifact, part] = /^file-([\da-f]{32})-(m|\d{1,5})-(\d{1,5})$/i.exec(id) ?? []
  const taskId = expanded(hex)
  if (taskId === undefined) return undefined
  return { taskId, artifact: artifact === 'm' ? 'm' : Number(artifact), part: Number(part) }
}

/** Returns the same id for the same values, so that a repeated message is recognized. */
export function idOfValues(...values: unknown[]): string {
  return uuidOfHash(hash('sha256', JSON.stringify(['openai', ...values]), 'buffer'))
}
