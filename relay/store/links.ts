import path from 'node:path'
import { type DocumentDatabase, declareCollection } from '@parley/kit/database/documents'
import { memoryDocuments } from '@parley/kit/database/memory/documents'
import { openDatabase } from '@parley/kit/database/sqlite/database'
import { sqliteDocuments, sqliteDocumentsSoon } from '@parley/kit/database/sqlite/documents'
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
/** The task of a foreign agent that belongs to one of our tasks. */
export type TaskLink = z.infer<typeof taskLink>

/** The IDs that a foreign agent uses for our tasks and contexts. A change survives the process when its promise resolves. */
export interface LinkStore extends AsyncDisposable {
  /** Whether a failure of the machine may lose the changes of the last second. */
  readonly mayForget: boolean
  task(agent: string, taskId: string): Promise<TaskLink | undefined>
  saveTask(agent: string, taskId: string, link: TaskLink): Promise<void>
  /** Returns the agent's own ID of a context. */
  context(agent: string, contextId: string): Promise<string | undefined>
  saveContext(agent: string, contextId: string, foreignId: string): Promise<void>
  /** Records, or records again, that the agent's app is open in this relay, so that it is opened again after a crash. */
  markOpen(agent: string): Promise<void>
  /** Removes the mark of this relay, and those of relays that no longer run. */
  unmarkOpen(agent: string): Promise<void>
  /** Returns the agents with apps that are open, or were when their relay ended. */
  openAgents(): Promise<string[]>
  /** Returns the agents with apps that were open in relays that have not marked them for `markedForMs`. */
  abandonedAgents(): Promise<string[]>
  /** Records that the agent has a store, and since when the gateway no longer names the agent. */
  saveStore(store: AgentStore): Promise<void>
  stores(): Promise<AgentStore[]>
  /** Removes the record of the store and the links of its agent. */
  removeStore(store: AgentStore): Promise<void>
  /** Removes up to `limit` links that have not changed for `linkDays` and returns their number. */
  removeExpired(limit: number): Promise<number>
}

/** A relay that has not repeated its mark for this long no longer runs. */
export const markedForMs = 180_000

/** How many links of a removed agent are removed in a batch. */
const removedAtOnce = 500

/** That the app of an agent is open in a relay. */
const openMark = z.object({
  agent: z.string(),
  relay: z.string(),
  /** Milliseconds since 1970. */
  at: z.number(),
})

const agentStore = z.object({
  /** The ID of the agent's registry entry. */
  agent: z.string(),
  /** The ID of the agent in the store. */
  id: z.string(),
  /** Milliseconds since 1970; absent while the agent is registered. */
  absentSince: z.number().optional(),
})
/** The record of an agent's store. */
export type AgentStore = z.infer<typeof agentStore>

/** How long a link is kept after its last change. Tasks are kept for a shorter time by default. */
export const linkDays = 400

const collection = declareCollection({
  name: 'foreign_links',
  fields: { agent: 'key', kind: 'key', id: 'key', body: 'text', expires_at: 'integer' },
  key: ['agent', 'kind', 'id'],
  indexes: {
    open: { only: { kind: ['open'] }, sqlite: 'foreign_links_open' },
    stores: { only: { kind: ['store'] }, sqlite: 'foreign_links_stores' },
    of_agent: { equals: ['agent', 'kind'] },
    expired: { order: 'expires_at', sqlite: 'foreign_links_expired' },
  },
  mongodb: { without: ['id'] },
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
  // Each link was an entry of this index, which only the search for marks uses.
  `
  DROP INDEX foreign_links_of_kind;
  CREATE INDEX foreign_links_open ON foreign_links (kind) WHERE kind = 'open';
  `,
  `CREATE INDEX foreign_links_stores ON foreign_links (kind) WHERE kind = 'store';`,
]

/**
 * Opens the links of a relay: a file of this process, a MongoDB database that relays share, or memory for tests.
 * @param options.storeUrl STORE_URL; undefined: the file `relay.db` in `folder`
 * @throws DatabaseRefused when the store cannot be opened
 */
export async function openLinks(options: {
  storeUrl: string | undefined
  folder: string
  /** Distinguishes this relay from others with the same database. The same after a restart, where possible. */
  relay?: string
}): Promise<LinkStore> {
  const { storeUrl, folder, relay = '' } = options
  if (storeUrl === 'memory:') return linksIn(memoryDocuments(), relay)
  if (storeUrl === undefined) {
    const database = await openDatabase(path.join(folder, 'relay.db'), sqliteMigrations)
    // With waits for the disk in a second file, a call would cost twice as many as its task.
    const soon = sqliteDocumentsSoon(database)
    return linksIn(sqliteDocuments(database), relay, {
      soon,
      close: async () => database[Symbol.asyncDispose](),
    })
  }
  const { openMongodbLinks } = await import('./mongodb/documents.ts')
  const { documents, close } = await openMongodbLinks(storeUrl)
  return linksIn(documents, relay, { close })
}

/**
 * The links of one relay in a database, which it may share with others.
 * @param options.soon the same collections with writes of links that do not wait for the disk
 */
export function linksIn(
  documents: DocumentDatabase,
  relay: string,
  options: { soon?: DocumentDatabase; close?: () => Promise<void> } = {},
): LinkStore {
  const { soon = documents, close = async () => {} } = options
  const marks = documents.collection(collection)
  const links = soon.collection(collection)
  const put = async (
    to: typeof links,
    link: { agent: string; kind: string; id: string; body: string },
    expiresAt = Date.now() + linkDays * 86_400_000,
  ) => {
    await to.put({ ...link, expires_at: expiresAt })
  }
  const openMarks = async () =>
    (await marks.find('open', {})).map(({ body }) => openMark.parse(JSON.parse(body)))
  const isAbandoned = (mark: z.infer<typeof openMark>) => Date.now() - mark.at > markedForMs
  return {
    mayForget: soon !== documents,
    task: async (agent, id) => {
      const found = await links.get({ agent, kind: 'task', id })
      return found && taskLink.parse(JSON.parse(found.body))
    },
    saveTask: (agent, id, link) => put(links, { agent, kind: 'task', id, body: JSON.stringify(link) }),
    context: async (agent, id) => (await links.get({ agent, kind: 'context', id }))?.body,
    saveContext: (agent, id, foreignId) => put(links, { agent, kind: 'context', id, body: foreignId }),
    markOpen: (agent) => {
      const body = JSON.stringify({ agent, relay, at: Date.now() })
      return put(marks, { agent, kind: 'open', id: relay, body })
    },
    unmarkOpen: async (agent) => {
      const over = (await openMarks()).filter(
        (mark) => mark.agent === agent && (mark.relay === relay || isAbandoned(mark)),
      )
      await Promise.all(over.map((mark) => marks.remove({ agent, kind: 'open', id: mark.relay })))
    },
    openAgents: async () => [...new Set((await openMarks()).map(({ agent }) => agent))],
    abandonedAgents: async () => [
      ...new Set((await openMarks()).filter(isAbandoned).map(({ agent }) => agent)),
    ],
    saveStore: ({ agent, id, absentSince }) => {
      const body = JSON.stringify({ agent, id, absentSince })
      return put(marks, { agent, kind: 'store', id, body }, Number.MAX_SAFE_INTEGER)
    },
    stores: async () =>
      (await marks.find('stores', {})).map(({ body }) => agentStore.parse(JSON.parse(body))),
    removeStore: async ({ agent, id }) => {
      for (const kind of ['task', 'context']) {
        let removed = removedAtOnce
        while (removed === removedAtOnce)
          removed = await marks.removeMany('of_agent', { agent, kind }, { limit: removedAtOnce })
      }
      await marks.remove({ agent, kind: 'store', id })
    },
    removeExpired: (limit) => links.removeMany('expired', {}, { before: Date.now(), limit }),
    [Symbol.asyncDispose]: close,
  }
}
