import type { OutgoingMessage } from '@parley/wire/codecs/parley/shapes'
import type { JsonObject } from '@parley/wire/model/task'
import { type Command, InvalidArgumentError } from 'commander'
import { UsageError } from '../terminal/faults.ts'
import type { Io } from '../terminal/io.ts'
import { uuid } from '../terminal/uuid.ts'
import { fileParts } from './file-part.ts'

export interface MessageOptions {
  file?: string[]
  reference?: string[]
  data?: JsonObject
  task?: string
  context?: string
}

/** Adds the options that describe a message. */
export function messageOptions<T extends Command>(command: T): T {
  const collected = (text: string, before: string[] = []) => [...before, text]
  return command
    .option('--file <path>', 'attach this file (repeatable)', collected)
    .option('--data <json>', 'attach this JSON object', jsonObject)
    .option('--task <id>', 'continue this paused task; the message answers its question', uuid)
    .option('--context <id>', 'send the message in this conversation', uuid)
    .option(
      '--reference <task>',
      'give the agent the result of this ended task (repeatable)',
      (text: string, before?: string[]) => collected(uuid(text), before),
    )
}

/** @throws UsageError if there is nothing to send or a file cannot be sent */
export async function messageOf(
  io: Io,
  text: string | undefined,
  options: MessageOptions,
): Promise<OutgoingMessage> {
  const said = text === '-' ? await textFrom(io.stdin) : text
  const files = await fileParts(options.file ?? [], io.cwd)
  const data = options.data === undefined ? [] : [{ kind: 'data' as const, data: options.data }]
  const parts = [...files, ...data]
  if ((said === undefined || said === '') && parts.length === 0) {
    throw new UsageError('Nothing to send: give a text, --file or --data.')
  }
  return {
    ...(said === undefined || said === '' ? {} : { text: said }),
    parts,
    ...(options.task === undefined ? {} : { taskId: options.task }),
    ...(options.context === undefined ? {} : { contextId: options.context }),
    ...(options.reference === undefined ? {} : { referenceTaskIds: options.reference }),
  }
}

const stdinMaxBytes = 7 * 1024 * 1024

export async function textFrom(stdin: NodeJS.ReadableStream): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of stdin) {
    chunks.push(Buffer.from(chunk))
    size += Buffer.byteLength(chunk)
    if (size > stdinMaxBytes) throw new UsageError('The text on stdin is longer than 7 MiB.')
  }
  return Buffer.concat(chunks).toString('utf8')
}

function jsonObject(text: string): JsonObject {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new InvalidArgumentError('It is not JSON.')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InvalidArgumentError('It is not a JSON object.')
  }
  return value as JsonObject
}
