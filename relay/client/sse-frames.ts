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

/** Yields the data of each server-sent event. @throws InvalidAgentAnswer when a limit is exceeded */
export async function* sseFrames(body: AsyncIterable<Buffer>, limits: StreamLimits): AsyncGenerator<string> {
  const ready: string[] = []
  let isTooLarge = false
  const parser = createParser({
    onEvent: ({ data }) => ready.push(data),
    onError: ({ type }) => {
      isTooLarge ||= type === 'max-buffer-size-exceeded'
    },
    maxBufferSize: limits.frameMaxChars,
  })
  const decoder = new TextDecoder()
  let [frames, bytes] = [0, 0]
  for await (const chunk of body) {
    bytes += chunk.byteLength
    if (bytes > limits.streamMaxBytes)
      throw new InvalidAgentAnswer(`The agent's stream is larger than ${limits.streamMaxBytes} bytes`)
    parser.feed(decoder.decode(chunk, { stream: true }))
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
