import { messageSend, parseParams } from '@parley/wire/codecs/parley/params'
import { taskOut } from '@parley/wire/codecs/parley/wire-out'
import { acceptMessage } from './accept-message.ts'
import type { Answer, Call, Services } from './method.ts'

/** Answers with the durable task in `submitted` (spec/methods.md#messagesend). */
export async function sendMessage(services: Services, call: Call): Promise<Answer> {
  const params = parseParams(messageSend, call.params)
  const { record, start, headers } = await acceptMessage(services, call, params)
  start()
  return { result: taskOut(record), ...(headers !== undefined && { headers }) }
}
