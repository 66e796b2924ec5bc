import { ParleyError } from '@parley/wire/errors'
import type { FastifyReply } from 'fastify'
import { parseFileId } from './ids.ts'
import type { ApiRequest } from './open-ai-routes.ts'
import { fileAt } from './task-answer.ts'

/** `GET /v1/files/{id}/content`: a file of the result of one of the caller's tasks. */
export async function sendFile(
  { options, request, reply, caller }: ApiRequest,
  id: string,
): Promise<FastifyReply> {
  const address = parseFileId(id)
  if (address === undefined) throw fileNotFound()
  const task = await options.calls.as(request, caller).getTask({ taskId: address.taskId })
  const file = fileAt(task, address)
  if (file?.bytes === undefined) throw fileNotFound()
  return reply
    .headers({
      'content-type': file.type,
      // A browser must not run a file of an agent as a page of the gateway.
      'content-disposition': `attachment; filename*=UTF-8''${encodeURIComponent(file.name)}`,
      'cache-control': 'private, no-store',
    })
    .send(Buffer.from(file.bytes, 'base64'))
}

const fileNotFound = () =>
  new ParleyError('NotFound', { message: 'File not found', data: { reason: 'file', param: 'file_id' } })
