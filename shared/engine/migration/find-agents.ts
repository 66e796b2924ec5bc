import { existsSync, globSync } from 'node:fs'
import path from 'node:path'
import { readBase58 } from '@parley/kit/did/base58'
import { keyId } from '@parley/kit/did/did'
import { loadOrCreateKeys } from '@parley/kit/did/key-file'
import { MigrationFailed } from './copy.ts'

/** An agent's embedded database. */
export interface FoundAgent {
  name: string
  /** The last segment of the agent's DID. */
  agentId: string
  file: string
}

/**
 * Finds the agents' databases in a data folder: `agents/<name>/agent.db`, or `agent.db` if the folder belongs
 * to one agent.
 * @param keysFolder the folder with the keys, if they are not next to the databases
 * @throws MigrationFailed when a key is missing, because the owner of the tasks would be unknown
 */
export async function findAgents(folder: string, keysFolder: string): Promise<FoundAgent[]> {
  const names = globSync('agents/*/agent.db', { cwd: folder }).map((file) => path.dirname(file))
  if (existsSync(path.join(folder, 'agent.db'))) names.push('.')
  return Promise.all(
    names.sort().map(async (name) => ({
      name: name === '.' ? path.basename(path.resolve(folder)) : path.basename(name),
      agentId: await agentIdIn([folder, keysFolder].map((place) => path.join(place, name, 'agent.key.json'))),
      file: path.join(folder, name, 'agent.db'),
    })),
  )
}

async function agentIdIn(files: string[]): Promise<string> {
  const file = files.find((one) => existsSync(one))
  if (file === undefined) {
    throw new MigrationFailed(
      `There is no key file ${files[0]}, which names the owner of the tasks. Set DATA_DIR to the folder with the keys.`,
    )
  }
  const { history } = await loadOrCreateKeys(file)
  const first = readBase58(history[0].publicKeyBase58, 32)
  if (first === undefined) throw new MigrationFailed(`The first key of ${file} is not a key.`)
  return keyId(first)
}
