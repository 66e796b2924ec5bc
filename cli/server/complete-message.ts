import { randomUUID } from 'node:crypto'
import type { OutgoingMessage, SendConfiguration } from '@parley/wire/codecs/parley/shapes'

export interface Outgoing {
  message: OutgoingMessage
  configuration: SendConfiguration | undefined
}

/**
 * Adds the fields that other implementations require: `contextId`, `taskId` and `acceptedOutputModes`. Adds none for
 * "-", because the gateway completes the message after it has chosen an agent.
 * @param knownContextId the context of the task that the message continues
 */
export function completeMessage(
  agent: string,
  { message, configuration }: Outgoing,
  knownContextId?: string,
): Outgoing {
  if (agent === '-') return { message, configuration }
  return {
    message: { contextId: knownContextId ?? randomUUID(), taskId: randomUUID(), ...message },
    configuration: { acceptedOutputModes: ['*/*'], ...configuration },
  }
}
