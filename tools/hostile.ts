/**
 * `npm run hostile [-- --production]`: starts a deployment with an agent that records everything it is sent, sends it
 * requests of a caller and of an operator, and tries what it recorded at every other address. Prints a table of the
 * attempts. Exits with status 1 if a secret reached the agent or an attempt succeeded.
 */
import { parseArgs } from 'node:util'
import { hostileRun } from './hostile/run.ts'

const { values } = parseArgs({ options: { production: { type: 'boolean', default: false } } })
const { requests, leaked, attempts } = await hostileRun({ production: values.production, say: console.log })
console.table(attempts.map(({ attempt, status, refused }) => ({ attempt, status, refused })))
const succeeded = attempts.filter(({ refused }) => !refused)
for (const { attempt, answer } of succeeded) console.log(`succeeded: ${attempt}: ${answer}`)
for (const secret of leaked) console.log(`leaked: ${secret}`)
console.log(
  `${requests} requests recorded, ${attempts.length} attempts, ${succeeded.length} succeeded, ${leaked.length} secrets leaked`,
)
if (succeeded.length > 0 || leaked.length > 0 || attempts.length === 0) process.exitCode = 1
