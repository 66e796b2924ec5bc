import { access, mkdir } from 'node:fs/promises'
import path from 'node:path'
import { type Io, say } from '../terminal/io.ts'
import { clientSettings } from './environment.ts'

/**
 * Sets DATA_DIR, and STORE_URL if it names a folder, to the agent's own subfolder `agents/<name>`, as `parley up`
 * does. An agent therefore keeps its identity however it is started. A key that an earlier version wrote directly to
 * DATA_DIR remains in use.
 */
export async function useAgentDataDir(io: Io, name: string): Promise<void> {
  const { dataDir } = clientSettings(io)
  const own = path.join(dataDir, 'agents', name)
  const earlier = path.join(dataDir, 'agent.key.json')
  if ((await exists(earlier)) && !(await exists(path.join(own, 'agent.key.json')))) {
    say(
      io,
      `${name} uses the key in ${earlier}, which every agent started with this DATA_DIR shares. To give ${name} its own identity, move agent.key.json, oauth-client.json and agent.db* into ${own}.`,
    )
    return
  }
  await mkdir(own, { recursive: true, mode: 0o700 })
  io.env.DATA_DIR = own
  const folder = /^sqlite:(.+)$/.exec(io.env.STORE_URL ?? '')?.[1]
  if (folder !== undefined)
    io.env.STORE_URL = `sqlite:${path.join(path.resolve(io.cwd, folder), 'agents', name)}`
}

function exists(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  )
}
