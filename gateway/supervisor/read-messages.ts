import type { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { jsonOf } from '@parley/wire/model/json-text'

const messageMaxChars = 1024 * 1024
/** An agent sends two messages in its lifetime. */
const messagesMax = 100

/** Reads the messages of a process, one JSON text per line, and stops at a process that sends too much. */
export function readMessages(
  stream: Readable,
  onMessage: (value: unknown) => void,
  onFlood: (reason: string) => void,
): void {
  const decoder = new StringDecoder('utf8')
  let rest = ''
  let count = 0
  const stop = (reason: string) => {
    stream.removeAllListeners('data').destroy()
    onFlood(`sent ${reason} to the gateway`)
  }
  stream.on('data', (bytes: Buffer) => {
    const lines = (rest + decoder.write(bytes)).split('\n')
    rest = lines.pop() ?? ''
    count += lines.length
    if (count > messagesMax) stop(`more than ${messagesMax} messages`)
    else if (rest.length > messageMaxChars) stop(`a message of more than ${messageMaxChars} characters`)
    else for (const line of lines) onMessage(jsonOf(line))
  })
}
