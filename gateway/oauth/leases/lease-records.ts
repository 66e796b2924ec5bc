import { type DocumentDatabase, declareCollection, type Found } from '@parley/kit/database/documents'
import { z } from 'zod'

/** An invalidation of the log that gateways on one database share. */
export interface Invalidation {
  seq: number
  tags: readonly string[]
}

/** The latest invalidations. */
export interface SharedLog {
  instance: string
  /** Number of the last invalidation. */
  seq: number
  /** In order of their numbers, without gaps. Earlier ones were removed. */
  recent: readonly Invalidation[]
}

/** A gateway that grants leases, or may grant them. */
export interface GatewayRecord {
  id: string
  /** Increases with each update by the gateway. */
  beat: number
  /** The log that the gateway follows. */
  instance: string
  /** No holder of this gateway uses a response from before this invalidation. */
  applied: number
  /** Whether the gateway may grant leases. Others need not wait for a gateway that grants none. */
  grants: boolean
}

/** The state of the lease protocol that the gateways on one database share. A read sees all earlier changes. */
export interface LeaseRecords {
  read(): Promise<{ log: SharedLog | undefined; gateways: GatewayRecord[] }>
  /** Replaces the log if its last number is still `was`; undefined: if there is none. Returns whether it was written. */
  writeLog(log: SharedLog, was: number | undefined): Promise<boolean>
  addGateway(gateway: GatewayRecord): Promise<void>
  /** Returns false if the record was removed. */
  updateGateway(gateway: GatewayRecord): Promise<boolean>
  /** @param beat remove the record only if it was not updated since */
  removeGateway(id: string, beat?: number): Promise<void>
}

const logId = 'log'

const fields = {
  /** `log`, or the id of a gateway. */
  id: 'key',
  /** Of the log: the number of the last invalidation. */
  beat: 'integer',
  instance: 'text',
  applied: 'integer',
  grants: 'flag',
  /** Of the log: the latest invalidations as JSON. */
  recent: 'text?',
} as const

export const leaseCollection = declareCollection({
  name: 'introspection_leases',
  fields,
  key: ['id'],
  indexes: { all: { order: 'beat' } },
  mongodb: { without: [] },
})

const storedInvalidations = z.array(z.object({ seq: z.number(), tags: z.array(z.string()) }))

export function leaseRecords(database: DocumentDatabase): LeaseRecords {
  const records = database.collection(leaseCollection)
  return {
    read: async () => {
      const found = await records.find('all', {})
      const log = found.find(({ id }) => id === logId)
      return { log: log && logOf(log), gateways: found.flatMap(gatewayOf) }
    },
    writeLog: async ({ instance, seq, recent }, was) => {
      const log = { beat: seq, instance, applied: seq, recent: JSON.stringify(recent) }
      const written =
        was === undefined
          ? await records.insert({ id: logId, ...log })
          : await records.update({ id: logId }, log, { beat: was })
      return written === 'written'
    },
    addGateway: async ({ grants, ...gateway }) => {
      await records.put({ ...gateway, ...(grants && { grants }) })
    },
    updateGateway: async ({ id, grants, ...gateway }) =>
      (await records.update({ id }, { ...gateway, grants: grants || undefined })) === 'written',
    removeGateway: async (id, beat) => {
      await records.remove({ id }, beat === undefined ? {} : { beat })
    },
  }
}

function logOf({ beat, instance, recent = '[]' }: Found<typeof fields>): SharedLog {
  return { instance, seq: beat, recent: storedInvalidations.parse(JSON.parse(recent)) }
}

function gatewayOf({ id, beat, instance, applied, grants }: Found<typeof fields>): GatewayRecord[] {
  return id === undefined || id === logId ? [] : [{ id, beat, instance, applied, grants: grants === true }]
}
