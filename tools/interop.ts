/**
 * `npm run interop`: runs the clients of the official SDKs of A2A (npm `@a2a-js/sdk`, PyPI `a2a-sdk`, both versions)
 * against the calculator: at its own address, at `/agents/calculator/` and at the gateway's address. Prints a table of
 * steps, clients and addresses. The exit code is 1 after a failure. Python 3.12 or newer is needed for `a2a-sdk`.
 */
import { printTable } from './bench/support/report.ts'
import { startDeployment } from './interop/deployment.ts'
import { jsV1 } from './interop/js-v1.ts'
import { jsV03 } from './interop/js-v03.ts'
import { a2aSdk, pythonClients } from './interop/python.ts'
import { addresses, type Cell, runSteps, shown } from './interop/run.ts'
import { steps } from './interop/steps.ts'
import { installPython } from './testing/python.ts'

const reason = Object.values(a2aSdk).map(installPython).find(Boolean)
if (reason !== undefined) console.log(`The clients of a2a-sdk are skipped: ${reason}`)
const clients = [jsV1('JSON-RPC'), jsV1('REST'), jsV03, ...(reason === undefined ? pythonClients : [])]
const failures: string[] = []
const rows = new Map(steps.map((step) => [step, [step.name]]))

await using deployment = await startDeployment(['calculator'])
for (const kind of clients) {
  console.log(`Running ${kind.name}`)
  for (const address of addresses) {
    for (const [step, cell] of await runSteps(kind, deployment, address)) {
      rows.get(step)?.push(shown(cell))
      note(`${step.name}, ${kind.name}, ${address}`, cell)
    }
  }
}

console.log('Each cell: the agent itself, /agents/calculator/, the gateway')
printTable(
  ['', ...clients.map(({ name }) => name)],
  [...rows.values()].map(([name = '', ...cells]) => [
    name,
    ...clients.map((_, at) => cells.slice(at * addresses.length, (at + 1) * addresses.length).join(' ')),
  ]),
)
for (const failure of failures) console.log(failure)
if (failures.length > 0) process.exitCode = 1

function note(name: string, cell: Cell): void {
  if (typeof cell === 'object') failures.push(`FAILED: ${name}: ${cell.failure}`)
}
