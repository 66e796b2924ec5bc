import { cleanText } from '@parley/wire/model/clean-text'
import { isPaused, type Part, type Task } from '@parley/wire/model/task'
import { type FileAddress, fileId } from './ids.ts'

/** The result of a task as a chat client shows it. */
export interface TaskAnswer {
  text: string
  files: AnswerFile[]
}

export interface AnswerFile {
  id: string
  name: string
  /** The media type, in lower case. */
  type: string
  /** The content in base64. */
  bytes?: string
  /** The address of a file that is not stored with the task. */
  uri?: string
}

interface Group {
  artifact: FileAddress['artifact']
  parts: readonly Part[]
}

/** Returns the result. Data is part of it only if there is no text, because programs can request JSON. */
export function answerOf(task: Task): TaskAnswer {
  const groups = resultOf(task)
  const parts = groups.flatMap((group) => group.parts)
  const text = textOfGroups(groups)
  const isEmpty = text.trim() === ''
  return {
    text: isEmpty
      ? parts.flatMap((part) => (part.kind === 'data' ? [fenced(part.data)] : [])).join('\n\n')
      : text,
    files: groups.flatMap((group) => filesOf(task.id, group)),
  }
}

/** Returns the result as JSON: the merged data, or else a text that is JSON; undefined if there is neither. */
export function jsonAnswerOf(task: Task): string | undefined {
  const parts = resultOf(task).flatMap((group) => group.parts)
  const data = parts.flatMap((part) => (part.kind === 'data' ? [part.data] : []))
  if (data.length > 0) return JSON.stringify(Object.assign({}, ...data))
  const text = parts.flatMap((part) => (part.kind === 'text' ? [part.text] : [])).join('')
  try {
    JSON.parse(text)
    return text
  } catch {
    return undefined
  }
}

/** Texts of one artifact follow each other directly, as its deltas do; artifacts are separate paragraphs. */
function textOfGroups(groups: readonly Group[]): string {
  return groups
    .map(({ parts }) => plainText(parts))
    .filter((text) => text !== '')
    .join('\n\n')
}

export function plainText(parts: readonly Part[]): string {
  return parts.map((part) => (part.kind === 'text' ? cleanText(part.text) : '')).join('')
}

function resultOf({ artifacts, status }: Task): Group[] {
  if (artifacts.length > 0) return artifacts.map(({ parts }, artifact) => ({ artifact, parts }))
  return status.message === undefined ? [] : [{ artifact: 'm', parts: status.message.parts }]
}

function filesOf(taskId: string, { artifact, parts }: Group): AnswerFile[] {
  return parts.flatMap((content, part) => {
    if (content.kind !== 'file') return []
    const { name, mimeType, bytes, uri } = content.file
    const type = (mimeType ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''
    const isType = /^[\w.+-]+\/[\w.+-]+$/.test(type)
    return {
      id: fileId({ taskId, artifact, part }),
      name: fileName(name),
      type: isType ? type : 'application/octet-stream',
      ...(bytes !== undefined && { bytes }),
      ...(uri !== undefined && { uri }),
    }
  })
}

/** Returns the file of the task with this address. */
export function fileAt(task: Task, address: FileAddress): AnswerFile | undefined {
  const group = resultOf(task).find(({ artifact }) => artifact === address.artifact)
  return group && filesOf(task.id, group).find(({ id }) => id === fileId(address))
}

function fileName(name: string | undefined): string {
  const shown = cleanText(name ?? '')
    .replace(/[\s"\\[\]()<>/]+/g, '_')
    .slice(0, 100)
  return shown === '' ? 'file' : shown
}

const fenced = (data: object) => `\`\`\`json\n${JSON.stringify(data, null, 2)}\n\`\`\``

/** Images up to this size are part of the text of a chat answer. Clients send it back with each later message. */
const inlineImageMaxChars = 256 * 1024
const inlineTypes = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])

/** Returns a file as Markdown: a small image, or a link that needs the caller's token. */
export function fileAsMarkdown({ id, name, type, bytes, uri }: AnswerFile, apiUrl: string): string {
  if (bytes !== undefined && inlineTypes.has(type) && bytes.length <= inlineImageMaxChars)
    return `![${name}](data:${type};base64,${bytes})`
  return `[${name}](${bytes === undefined && uri !== undefined ? uri : `${apiUrl}/files/${id}/content`})`
}

/** Why a task has no result, as an agent states it. */
export function reasonOf({ status }: Task, otherwise: string): string {
  const text = plainText(status.message?.parts ?? []).trim()
  return text === '' ? otherwise : text
}

/** The number of the caller's messages in the task. */
export const turnsOf = ({ history }: Task): number => history.filter(isCallers).length

export const isCallers = ({ role }: Task['history'][number]): boolean => role === 'user'

export const isQuestion = ({ status }: Task): boolean => isPaused(status.state)
