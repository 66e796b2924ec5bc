/**
 * A test program that writes tasks and prints each change once it is acknowledged, until it is killed.
 */
import { next, sampleRecord } from './sample-record.cases.ts'
import { openSqliteStore } from './sqlite/store.ts'

const store = await openSqliteStore({ file: process.argv[2] ?? '', largePartBytes: 1000 })
process.stdout.write('open\n')

await Promise.all(
  Array.from({ length: 16 }, async (_, client) => {
    for (;;) {
      let record = sampleRecord({ dueAt: client })
      await store.createTask(record)
      process.stdout.write(`${record.id} 0\n`)
      record = next(record, 'working', {
        artifacts: [{ artifactId: 'a', name: 'n', parts: [{ kind: 'text', text: record.id.repeat(100) }] }],
      })
      await store.commitTask(record)
      process.stdout.write(`${record.id} 1\n`)
      await store.commitTask(next(record, 'completed'))
      process.stdout.write(`${record.id} 2\n`)
    }
  }),
)
