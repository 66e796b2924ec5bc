import path from 'node:path'
import { DiscoveryFailed, discover } from '@parley/kit/auth/discovery'
import { readSecretFile } from '@parley/kit/process/secret-file'
import { jsonOf } from '@parley/wire/model/json-text'
import { z } from 'zod'
import { CommandFailed, UsageError } from '../terminal/faults.ts'
import type { Io } from '../terminal/io.ts'
import { clientSettings } from './environment.ts'
import { connect, type ServerConnection, slugOf } from './server-connection.ts'
import { issueToken } from './token-source.ts'

/** The file in which `parley agent` stores its registered OAuth client. */
const clientFile = z.object({ client_id: z.string(), client_secret: z.string(), issuer: z.url() })

/**
 * Connects the agent's author to the agent at its own address, with the agent's OAuth client from DATA_DIR.
 * @throws UsageError, CommandFailed
 */
export async function connectAsAgent(
  io: Io,
  agent: string | undefined,
  url: string,
): Promise<ServerConnection> {
  if (agent === undefined || agent === '-') throw new UsageError('--agent-url needs the name of the agent.')
  const { dataDir } = clientSettings(io)
  const file = path.join(dataDir, 'agents', slugOf(agent), 'oauth-client.json')
  const text = await readSecretFile(file).catch((thrown: NodeJS.ErrnoException) => {
    if (thrown.code === 'ENOENT')
      throw new CommandFailed(`There is no ${file}. Run this where "npx parley agent" runs ${agent}.`)
    throw thrown
  })
  const client = clientFile.safeParse(jsonOf(text)).data
  if (client === undefined) throw new CommandFailed(`${file} is not a client file.`)
  const { token_endpoint: tokenUrl } = await discover(client.issuer).catch((thrown: unknown) => {
    if (thrown instanceof DiscoveryFailed)
      throw new CommandFailed(`The OAuth server ${thrown.issuer} cannot be used: ${thrown.why}.`)
    throw thrown
  })
  if (tokenUrl === undefined) throw new CommandFailed(`${client.issuer} has no token endpoint.`)
  const issued = await issueToken({ ...client, token_url: tokenUrl })
  return connect(io, { url, token: issued.access_token })
}
