/**
 * The thread that writes records of the log into the tables (`FlushThread`). It opens the same database through its own
 * connection, whose commits wait for the disk.
 */
import { readFileSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import { recordsIn } from '@parley/kit/database/segment-log'
import { openConnection } from '@parley/kit/database/sqlite/connection'
import { flushRecords } from './flush.ts'
import type { FlushOrder, FlushOutcome } from './flush-thread.ts'

const { database: file, id } = workerData as { database: string; id: Uint8Array }
const connection = openConnection(file)

parentPort?.on('message', (order: FlushOrder) => {
  const outcome: FlushOutcome = {}
  try {
    flush(order)
  } catch (error) {
    outcome.error = (error as Error).message
  }
  parentPort?.postMessage(outcome)
})

function flush({ file: segment, after, last }: FlushOrder): void {
  const found = recordsIn(readFileSync(segment), { id, file: segment })
  const records = found.filter(({ position }) => position > after && position <= last)
  const position = records.at(-1)?.position
  if (position !== last) throw new Error(`The log ends at ${position} instead of ${last}`)
  connection.transaction(() => flushRecords(connection, records))
}
