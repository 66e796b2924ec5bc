import { createParser } from 'eventsource-parser'
import { InvalidAgentAnswer } from './agent-errors.ts'

export interface StreamLimits {
  /** The maximum size of a frame, in characters. */
  frameMaxChars: number
  /** The maximum number of frames of one stream. */
  framesMax: number
  /** The maximum size of one stream. */
  streamMaxBytes: number
}

/** The maximum number of lines with unknown fields. The parser creates an error for each of them, which is slow. */
const unknownLinesMax = 1000

/** Yields the data of each server-sent event. @throws InvalidAgentAnswer when a limit is exceeded */
export async function* sseFrames(body: AsyncIterable<Buffer>, limits: StreamLimits): AsyncGenerator<string> {
  const ready: string[] = []
  let isTooLarge = false
  let unknownLines = 0
  const parser = createParser({
    onEvent: ({ data }) => ready.push(data),
    onError: ({ type }) => {
      if (type === 'max-buffer-size-exceeded') isTooLarge = true
      else if ((unknownLines += 1) > unknownLinesMax)
        throw new InvalidAgentAnswer("The agent's stream does not consist of server-sent events")
    },
    maxBufferSize: limits.frameMaxChars,
  })
  const decoder = new TextDecoder()
  const lines = lineFeeds()
  let [frames, bytes] = [0, 0]
  for await (const chunk of body) {
    bytes += chunk.byteLength
    if (bytes > limits.streamMaxBytes)
      throw new InvalidAgentAnswer(`The agent's stream is larger than ${limits.streamMaxBytes} bytes`)
    parser.feed(lines(decoder.decode(chunk, { stream: true })))
    frames += ready.length
    if (isTooLarge || ready.some((data) => data.length > limits.frameMaxChars))
      throw new InvalidAgentAnswer(
        `A frame of the agent's stream is larger than ${limits.frameMaxChars} characters`,
      )
    if (frames > limits.framesMax)
      throw new InvalidAgentAnswer(`The agent's stream has more than ${limits.framesMax} frames`)
    yield* ready.splice(0)
  }
}

/**
 * Returns a function that converts the line ends of a stream, which arrives in pieces, to line feeds. The parser searches the
 * rest of a piece for each line if the piece has carriage returns.
 */
function lineFeeds(): (text: string) => string {
  let endsWithReturn = false
  return (text) => {
    const rest = endsWithReturn && text.startsWith('\n') ? text.slice(1) : text
    if (text !== '') endsWithReturn = text.endsWith('\r')
    return rest.includes('\r') ? rest.replace(/\r\n?/g, '\n') : rest
  }
}
