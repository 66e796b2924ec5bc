import { randomInt } from 'node:crypto'
import { keyText } from '@parley/kit/database/keys'
import { isConflict, isDuplicate } from '@parley/kit/database/mongodb/database'
import { type Collection, Long } from 'mongodb'
import { Changes, type Changing, changed } from '../../../store/mongodb/changes.ts'
import { type GatewayMongodb, gatewayScope } from '../../../store/mongodb/database.ts'
import type { AgentEntry, Load, Replica } from '../../entry.ts'
import { withReplicas } from '../../replicas.ts'
import { isUuid } from '../../slug.ts'
import { EntryChanged, type RegistryStore, type Signs, type StoredEntry } from '../registry-store.ts'

interface ReplicaFields {
  url: string
  load: string
  last_seen: string
  lease_until: number
}

interface EntryDocument extends Changing {
  entry_id: string
  /** Absent from the tombstone of a removed entry. */
  slug?: string
  did?: string
  revision: number
  /** Identity and admission as JSON. */
  facts?: string
  /** Lease, load and measurements as JSON. */
  signs?: string
  lease_until: number
  replicas?: Record<string, ReplicaFields>
}

const scope = { agent_id: gatewayScope }
/** How long tombstones are kept. Gateways that synchronize later detect a removal by a thorough comparison. */
const marksForMs = 10 * 60 * 1000

/** Returns a registry store in a database shared by several gateways. Unique indexes cover the slug and DID. */
export function mongodbRegistryStore(database: GatewayMongodb): RegistryStore {
  const all = database.collection<EntryDocument>('registry_agents')
  const changes = new Changes<EntryDocument>(all, true)
  const there = { ...scope, slug: { $exists: true } }
  const methods = {
    all: async (): Promise<StoredEntry[]> => {
      const found = await all.find(there).toArray()
      changes.saw(found)
      return found.map(entryIn)
    },
    add: async (entry: AgentEntry): Promise<number> => {
      const revision = newRevision()
      // The tombstone of a removed entry may still exist.
      const free = { _id: idOf(entry.id), ...scope, slug: { $exists: false } }
      await unlessChanged(all.updateOne(free, writeOf(entry, revision), { upsert: true }))
      return revision
    },
    replace: async (entry: AgentEntry, known: number): Promise<number> => {
      const revision = newRevision()
      const same = { _id: idOf(entry.id), ...there, revision: known }
      const { matchedCount } = await unlessChanged(all.updateOne(same, writeOf(entry, revision)))
      if (matchedCount === 0) throw new EntryChanged('the entry has changed')
      return revision
    },
    remove: async (id: string, known: number): Promise<void> => {
      const { stamp, at } = changed()
      const fields = { slug: '', did: '', facts: '', signs: '', replicas: '' } as const
      const mark = { $set: { stamp, revision: newRevision() }, $unset: fields, $currentDate: at }
      const { matchedCount } = await all.updateOne({ _id: idOf(id), ...there, revision: known }, mark)
      if (matchedCount === 0) throw new EntryChanged('the entry has changed')
    },
    saveSigns: (signs: readonly Signs[]) => saveSigns(all, signs),
    changes: async (thorough = false) => {
      const found = await changes.next(thorough)
      const removed = found.filter(({ slug }) => slug === undefined).map(({ entry_id }) => entry_id)
      if (thorough) {
        removed.push(...(await changes.gone()).map(entryIdOf))
        const old = { $lt: new Date(Date.now() - marksForMs) }
        await all.deleteMany({ ...scope, slug: { $exists: false }, changed_at: old })
      }
      return { removed, changed: found.filter(({ slug }) => slug !== undefined).map(entryIn) }
    },
  }
  return {
    shared: true,
    ...database.guard(methods, new Set(['all', 'changes'])),
    ping: () => database.ping(),
  }
}

const idOf = (id: string) => `${gatewayScope}/${keyText(id)}`
const entryIdOf = (id: string) => id.slice(gatewayScope.length + 1)
/** Returns a revision that is not repeated, even if a removed entry is added again. */
const newRevision = () => randomInt(2 ** 47)

async function unlessChanged<T>(write: Promise<T>): Promise<T> {
  try {
    return await write
  } catch (error) {
    if (isDuplicate(error)) throw new EntryChanged('its id, slug or DID is there', { cause: error })
    if (isConflict(error)) throw new EntryChanged('it is being changed', { cause: error })
    throw error
  }
}

function writeOf(entry: AgentEntry, revision: number) {
  const { stamp, at } = changed()
  const { slug, did, leaseUntil, replicas } = entry
  const fields = {
    entry_id: entry.id,
    slug: keyText(slug),
    revision,
    facts: factsOf(entry),
    signs: signsOf(entry),
    lease_until: leaseUntil,
    stamp,
    replicas: Object.fromEntries((replicas ?? []).map((one) => [pathOf(one.id), fieldsOf(one)])),
  }
  return did === undefined
    ? { $set: fields, $unset: { did: '' as const }, $currentDate: at }
    : { $set: { ...fields, did: keyText(did) }, $currentDate: at }
}

/** Returns the document of an entry imported from another store. */
export function registryDocument(entry: AgentEntry) {
  const fields = { ...writeOf(entry, 1).$set, stamp: 'migrated', changed_at: new Date(0) }
  const did = entry.did === undefined ? {} : { did: keyText(entry.did) }
  return { _id: idOf(entry.id), ...scope, ...fields, ...did } satisfies EntryDocument
}

async function saveSigns(all: Collection<EntryDocument>, signs: readonly Signs[]): Promise<void> {
  const writes = signs.flatMap(({ entry, heard, gone }) => {
    const key = { _id: idOf(entry.id), ...scope, slug: { $exists: true } }
    const { stamp, at } = changed()
    const lives = (entry.replicas ?? []).filter(({ id }) => heard.includes(id))
    const set = Object.fromEntries(lives.map((one) => [`replicas.${pathOf(one.id)}`, fieldsOf(one)]))
    const unset = Object.fromEntries(gone.map((id) => [`replicas.${pathOf(id)}`, '' as const]))
    const ofReplicas = {
      $set: { ...set, stamp },
      ...(gone.length > 0 && { $unset: unset }),
      $currentDate: at,
    }
    const ofEntry = {
      $set: { signs: signsOf(entry), lease_until: entry.leaseUntil, stamp },
      $currentDate: at,
    }
    const older = { ...key, lease_until: { $lte: entry.leaseUntil } }
    const writesOne = [{ updateOne: { filter: older, update: ofEntry } }]
    if (lives.length + gone.length === 0) return writesOne
    return [{ updateOne: { filter: key, update: ofReplicas } }, ...writesOne]
  })
  await all.bulkWrite(writes as Parameters<typeof all.bulkWrite>[0], { ordered: false })
}

/** Returns the path of a replica whose id is used as a field name. @throws Error for anything but a UUID */
function pathOf(id: string): string {
  if (!isUuid(id)) throw new Error('The id of a replica is a UUID')
  return id
}

function fieldsOf({ url, load, lastSeen, leaseUntil }: Replica): ReplicaFields {
  return { url, load: JSON.stringify(load), last_seen: lastSeen, lease_until: leaseUntil }
}

function replicaIn([id, { url, load, last_seen, lease_until }]: [string, ReplicaFields]): Replica {
  return {
    id,
    url,
    load: JSON.parse(load) as Load,
    lastSeen: last_seen,
    leaseUntil: numberOf(lease_until),
  }
}

function signsOf({ status, since, lastSeen, sendsHeartbeats, load, measurements }: AgentEntry): string {
  return JSON.stringify({ status, since, lastSeen, sendsHeartbeats, load, measurements })
}

/** The fields that are stored separately from identity and admission. */
const ofSigns = new Set<string>([
  'status',
  'since',
  'lastSeen',
  'sendsHeartbeats',
  'load',
  'measurements',
  'leaseUntil',
  'replicas',
] satisfies (keyof AgentEntry)[])

function factsOf(entry: AgentEntry): string {
  const facts = Object.entries(entry).filter(([name]) => !ofSigns.has(name))
  return JSON.stringify(Object.fromEntries(facts))
}

function entryIn(found: EntryDocument): StoredEntry {
  const { facts = '{}', signs = '{}', replicas = {}, revision } = found
  const entry = {
    ...(JSON.parse(facts) as AgentEntry),
    ...(JSON.parse(signs) as AgentEntry),
    leaseUntil: numberOf(found.lease_until),
  }
  return {
    entry: withReplicas(entry, Object.entries(replicas).map(replicaIn)),
    revision: numberOf(revision),
  }
}

/** Converts times and revisions, which exceed the driver's 32-bit integers. */
const numberOf = (value: number | Long): number => (Long.isLong(value) ? value.toNumber() : value)
