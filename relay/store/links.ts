import path from 'node:path'
import { type DocumentDatabase, declareCollection } from '@parley/kit/database/documents'
import { memoryDocuments } from '@parley/kit/database/memory/documents'
import { openDatabase } from '@parley/kit/database/sqlite/database'
import { sqliteDocuments } from '@parley/kit/database/sqlite/documents'
import { z } from 'zod'

const taskLink = z.object({
  /** The message that was sent last, or is being sent. */
  messageId: z.string(),
  /** The agent's own ID of the task; absent until it is known. */
  taskId: z.string().optional(),
  /** Whether the agent has answered the message. */
  isAnswered: z.boolean(),
  /** Whether the task has ended at the agent. */
  isEnded: z.boolean(),
  /** The last pause, as `ForeignTask.pause` identifies it. */
  pause: z.string().optional(),
})
/** The task of a foreign agent that belongs to a task of ours. */
export type TaskLink = z.infer<typeof taskLink>

/** The IDs that a foreign agent uses for our tasks and contexts. A change is durable when its promise resolves. */
export interface LinkStore extends AsyncDisposable {
  task(agent: string, taskId: string): Promise<TaskLink | undefined>
  saveTask(agent: string, taskId: string, link: TaskLink): Promise<void>
  /** Returns the agent's own ID of a context. */
  context(agent: string, contextId: string): Promise<string | undefined>
  saveContext(agent: string, contextId: string, foreignId: string): Promise<void>
  /** Records whether the agent's app is open, so that it is opened again after a crash. */
  setOpen(agent: string, isOpen: boolean): Promise<void>
  /** Returns the agents whose apps were open when the relay ended. */
  openAgents(): Promise<string[]>
  /** Removes up to `limit` links that have not changed for `linkDays` and returns their number. */
  removeExpired(limit: number): Promise<number>
}

/** How long a link is kept after its last change. Tasks are kept for a shorter time by default. */
export const linkDays = 400

const collection = declareCollection({
  name: 'foreign_links',
  fields: { agent: 'key', kind: 'key', id: 'key', body: 'text', expires_at: 'integer' },
  key: ['agent', 'kind', 'id'],
  indexes: {
    of_kind: { equals: ['kind'], sqlite: 'foreign_links_of_kind' },
    expired: { order: 'expires_at', sqlite: 'foreign_links_expired' },
  },
  mongodb: { without: ['agent', 'id'] },
})

const sqliteMigrations = [
  `
  CREATE TABLE foreign_links (
    agent TEXT NOT NULL,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    body TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (agent, kind, id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX foreign_links_of_kind ON foreign_links (kind);
  CREATE INDEX foreign_links_expired ON foreign_links (expires_at);
  `,
]

/**
 * Opens the links of a relay: a file of this process, a MongoDB database that relays share, or memory for tests.
 * @param options.storeUrl STORE_URL; undefined: the file `relay.db` in `folder`
 * @throws DatabaseRefused when the store cannot be opened
 */
export async function openLinks(options: {
  storeUrl: string | undefined
  folder: string
}): Promise<LinkStore> {
  const { storeUrl, folder } = options
  if (storeUrl === 'memory:') return linksIn(memoryDocuments(), async () => {})
  if (storeUrl === undefined) {
    const database = await openDatabase(path.join(folder, 'relay.db'), sqliteMigrations)
    return linksIn(sqliteDocuments(database), async () => database[Symbol.asyncDispose]())
  }
  const { openMongodbLinks } = await import('./mongodb/documents.ts')
  const { documents, close } = await openMongodbLinks(storeUrl)
  return linksIn(documents, close)
}

function linksIn(documents: DocumentDatabase, close: () => Promise<void>): LinkStore {
  const links = documents.collection(collection)
  const put = async (agent: string, kind: string, id: string, body: string) => {
    await links.put({ agent, kind, id, body, expires_at: Date.now() + linkDays * 86_400_000 })
  }
  return {
    task: async (agent, id) => {
      const found = await links.get({ agent, kind: 'task', id })
      return found && taskLink.parse(JSON.parse(found.body))
    },
    saveTask: (agent, id, link) => put(agent, 'task', id, JSON.stringify(link)),
    context: async (agent, id) => (await links.get({ agent, kind: 'context', id }))?.body,
    saveContext: (agent, id, foreignId) => put(agent, 'context', id, foreignId),
    setOpen: async (agent, isOpen) => {
      if (isOpen) await put(agent, 'open', '', agent)
      else await links.remove({ agent, kind: 'open', id: '' })
    },
    openAgents: async () => (await links.find('of_kind', { kind: 'open' })).map(({ body }) => body),
    removeExpired: (limit) => links.removeMany('expired', {}, { before: Date.now(), limit }),
    [Symbol.asyncDispose]: close,
  }
}
