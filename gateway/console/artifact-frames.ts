import { boundedText } from '@parley/kit/net/bounded-text'
import { defaultDialect } from '@parley/wire/codecs/dialects'
import { parseParams } from '@parley/wire/codecs/parley/params'
import { ParleyError } from '@parley/wire/errors'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import { cleanText } from '@parley/wire/model/clean-text'
import { jsonOf } from '@parley/wire/model/json-text'
import { sniffMediaType } from '@parley/wire/model/media-signature'
import type { Part, Task } from '@parley/wire/model/task'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { AgentCalls } from '../calls/agent-calls.ts'
import type { InnerRequests } from '../calls/inner-requests.ts'
import type { BrowserSessions, OpenSession } from './browser-sessions.ts'
import { artifactApi, artifactQuery } from './descriptions.ts'

interface ArtifactParts {
  sessions: BrowserSessions
  calls: AgentCalls
  requests: InnerRequests
}

interface Address {
  agent: string
  task: string
  artifact: string
  part: string
}

type ArtifactRequest = FastifyRequest<{ Params: Address }>

/** The largest task of another owner that is read for one of its artifacts. */
const taskMaxBytes = 32 * 1024 * 1024
/** Longer texts are only downloaded. */
const textMaxBytes = 2 * 1024 * 1024
const nameMaxChars = 150

/** A page in the sandbox has its own origin, runs no scripts, loads nothing and is shown only by the console. */
const headers = {
  'content-security-policy':
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'",
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'private, no-store',
}

/** Adds the parts of artifacts, which agents have written, for sandboxed frames and images of the console. */
export function addArtifactFrames(scope: FastifyInstance, parts: ArtifactParts): void {
  scope.get<{ Params: Address }>(
    '/console/artifacts/:agent/:task/:artifact/:part',
    { config: { api: artifactApi } },
    async (request, reply) => {
      const open = await parts.sessions.require(request)
      const { download } = parseParams(artifactQuery, request.query)
      const { artifact, part } = request.params
      const task = (await ownTask(parts, request, open)) ?? (await taskOfOther(parts, request, open))
      const found = task?.artifacts.find(({ artifactId }) => artifactId === artifact)?.parts[Number(part)]
      if (found === undefined) throw notFound()
      return send(reply.headers(headers), found, download === true)
    },
  )
}

async function ownTask(
  { calls, sessions }: ArtifactParts,
  request: ArtifactRequest,
  open: OpenSession,
): Promise<Task | undefined> {
  const { agent, task: taskId } = request.params
  const caller = await sessions.callerOf(open, 'work')
  return calls
    .as(request, caller)
    .getTask({ taskId, agent })
    .catch((error: unknown) => {
      if (error instanceof ParleyError && error.status < 500 && error.status !== 429) return undefined
      throw error
    })
}

/** Reads the task by the operator API, which applies the setting for texts and writes the look to the audit log. */
async function taskOfOther(
  { requests, sessions }: ArtifactParts,
  request: ArtifactRequest,
  open: OpenSession,
): Promise<Task | undefined> {
  if (open.session.person.role !== 'operator') return undefined
  const { agent, task } = request.params
  const caller = await sessions.callerOf(open, 'operate')
  const path = `/operator/tasks/${encodeURIComponent(task)}?agent=${encodeURIComponent(agent)}`
  using response = await requests.of(request, caller).send({ method: 'GET', path, headers: {}, body: '' })
  if (response.status !== 200 && response.status !== 503) return undefined
  const answer = jsonOf(await boundedText(response.body, taskMaxBytes).catch(tooLarge))
  if (response.status === 503) throw unavailable(answer)
  return isObject(answer) ? defaultDialect.readTask(answer['task']) : undefined
}

/** The failure of the gateway's own route, which names the reason, such as a task that is too large. */
function unavailable(answer: unknown): ParleyError {
  const error = isObject(answer) && isObject(answer['error']) ? answer['error'] : {}
  const message = typeof error['message'] === 'string' ? { message: error['message'] } : {}
  return new ParleyError('Unavailable', { ...message, headers: { 'retry-after': '2' } })
}

/** Shows images that begin as images do, and texts as plain text. Everything else, such as PDF, is a download. */
function send(reply: FastifyReply, part: Part, download: boolean): FastifyReply {
  if (part.kind === 'text') return sendText(reply, part.text, nameOf(part.filename, 'text.txt'), download)
  if (part.kind === 'data')
    return sendText(
      reply,
      JSON.stringify(part.data, undefined, 2),
      nameOf(part.filename, 'data.json'),
      download,
    )
  const { bytes: base64, name, mimeType } = part.file
  if (base64 === undefined) throw atOtherServer()
  const content = Buffer.from(base64, 'base64')
  const fileName = nameOf(name, 'file')
  const image = sniffMediaType(content)
  if (image?.startsWith('image/') === true && !download)
    return reply
      .headers({ 'content-type': image, 'content-disposition': disposition('inline', fileName) })
      .send(content)
  const text = content.byteLength <= textMaxBytes ? textOf(content) : undefined
  if (text !== undefined && !download) return sendText(reply, text, fileName, false)
  const type =
    mimeType === 'application/pdf' && content.subarray(0, 5).toString('latin1') === '%PDF-' ? mimeType : image
  return reply
    .headers({
      'content-type': type ?? 'application/octet-stream',
      'content-disposition': disposition('attachment', fileName),
    })
    .send(content)
}

/** HTML, SVG, Markdown and JSON are shown as their source, in which control and bidirectional characters are replaced. */
function sendText(reply: FastifyReply, text: string, name: string, download: boolean): FastifyReply {
  const isAttachment = download || text.length > textMaxBytes
  return reply
    .headers({
      'content-type': 'text/plain; charset=utf-8',
      'content-disposition': disposition(isAttachment ? 'attachment' : 'inline', name),
    })
    .send(isAttachment ? text : cleanText(text))
}

/** Returns undefined for bytes that are not text in UTF-8. */
function textOf(content: Buffer): string | undefined {
  if (content.includes(0)) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(content)
  } catch {
    return undefined
  }
}

/** Returns a file name without folders and without characters that could hide its extension. */
function nameOf(name: string | undefined, fallback: string): string {
  const plain = (name ?? '').replace(/^.*[/\\]/, '').replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '')
  return plain.trim() === '' ? fallback : plain.slice(-nameMaxChars)
}

function disposition(kind: 'inline' | 'attachment', name: string): string {
  const ascii = name.replace(/[^\w .()-]/g, '_')
  const encoded = encodeURIComponent(name.toWellFormed()).replace(
    /['()*]/g,
    (one) => `%${one.charCodeAt(0).toString(16)}`,
  )
  return `${kind}; filename="${ascii}"; filename*=UTF-8''${encoded}`
}

const notFound = () =>
  new ParleyError('NotFound', {
    message:
      'Artifact not found: the task has no such part, belongs to another owner, or its texts are not shown to operators (OPERATOR_READS_TEXTS)',
    data: { reason: 'artifact' },
  })

const atOtherServer = () =>
  new ParleyError('NotFound', {
    message:
      'The artifact is at another server, from which the gateway reads nothing: open its address yourself',
    data: { reason: 'artifact_uri' },
  })

function tooLarge(cause: unknown): never {
  throw new ParleyError('InvalidRequest', {
    status: 413,
    message: `The task is larger than ${taskMaxBytes / 1024 / 1024} MiB: read it with npx parley task`,
    cause,
  })
}
