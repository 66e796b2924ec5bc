import type { HttpServerOptions } from './http-transport.ts'
import { HttpServer } from './http-transport.ts'
import { McpSession, type ServerInfo, type SessionTiming } from './session.ts'
import { type McpTool, readTools } from './tools.ts'

export interface ReadServer {
  info: ServerInfo
  tools: McpTool[]
}

const limits = { answerMaxBytes: 16 * 1024 * 1024, silenceMaxMs: 10_000 }

/**
 * Reads what an HTTP server states about itself, and its tools.
 * @throws the errors of `McpSession`; ServerRefusedCredential if the server requires another credential; OutgoingRefused
 */
export async function readServer(
  options: HttpServerOptions & { timing?: SessionTiming; signal?: AbortSignal },
): Promise<ReadServer> {
  const { timing = { requestMs: 10_000 }, signal, ...given } = options
  await using server = new HttpServer({ ...limits, ...given })
  await using session = await McpSession.open(server.transport(), {
    timing,
    ...(signal !== undefined && { signal }),
  })
  // Awaited here, because the session is closed at the end of the block.
  return await readSession(session, signal)
}

export async function readSession(session: McpSession, signal?: AbortSignal): Promise<ReadServer> {
  const { info } = session
  return { info, tools: readTools(await session.listTools(signal), info.era === 'legacy') }
}
