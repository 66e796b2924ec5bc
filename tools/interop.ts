/**
 * `npm run interop`: runs the clients of the official SDKs of A2A (npm `@a2a-js/sdk`, PyPI `a2a-sdk`, both versions)
 * against the calculator: at its own address, at `/agents/calculator/` and at the gateway's address. Then registers agents
 * built with these SDKs at the gateway and calls them in each dialect, and verifies the cards of the calculator and the gateway
 * with the SDKs' own verifiers. Prints a table of each. The exit code is 1 after a failure. Python 3.12 or newer is needed for
 * `a2a-sdk`. Then clients of MCP and of the OpenAI API call the calculator and the data analyst. With the argument `clients`,
 * `agents`, `cards`, `mcp` or `openai`, only this table. At the end, or with the argument `http`, sends more than 20,000 requests
 * of PyPI `schemathesis` to the HTTP API.
 */
import { printTable } from './bench/support/report.ts'
import { inspector, inspectorClients } from './clients/mcp-inspector.ts'
import { mcpClients } from './clients/mcp-sdk.ts'
import { openaiNode } from './clients/openai-node.ts'
import { mcpPython, mcpPythonClient, openaiPython, openaiPythonClient } from './clients/python-clients.ts'
import { calledAgents, failuresIn, runClient, type TestedClient } from './clients/step.ts'
import { jsVerifiers, pythonVerifiers, verifyCards } from './interop/card-verifiers.ts'
import { startDeployment } from './interop/deployment.ts'
import { type ForeignServer, join, jsServers, pythonServers } from './interop/foreign.ts'
import { jsV1 } from './interop/js-v1.ts'
import { jsV03 } from './interop/js-v03.ts'
import { own } from './interop/own.ts'
import { a2aSdk, pythonClients } from './interop/python.ts'
import { addresses, type Cell, runSteps, runStepsAt, shown } from './interop/run.ts'
import { type Step, steps } from './interop/steps.ts'
import { fuzz, installSchemathesis } from './schemathesis/run.ts'
import { installNodePackage } from './testing/node-packages.ts'
import { installPython } from './testing/python.ts'

const [only] = process.argv.slice(2)
const reason = Object.values(a2aSdk).map(installPython).find(Boolean)
if (reason !== undefined) console.log(`The clients and agents of a2a-sdk are skipped: ${reason}`)
const failures: string[] = []

await using deployment = await startDeployment(calledAgents)
if (only === undefined || only === 'clients') await tableOfClients()
if (only === undefined || only === 'agents') await tableOfAgents()
if (only === undefined || only === 'cards') await tableOfCards()
if (only === undefined || only === 'mcp') {
  const python = isReady('mcp of PyPI', installPython(mcpPython)) ? [mcpPythonClient] : []
  const ofInspector = isReady('the inspector', installNodePackage(inspector)) ? inspectorClients : []
  await tableOfSteps('Clients of MCP', [...mcpClients, ...ofInspector, ...python])
}
if (only === undefined || only === 'openai') {
  const python = isReady('openai of PyPI', installPython(openaiPython)) ? [openaiPythonClient] : []
  await tableOfSteps('Clients of the OpenAI API', [openaiNode, ...python])
}
if (only === undefined || only === 'http') await httpRequests()
for (const failure of failures) console.log(failure)
if (failures.length > 0) process.exitCode = 1

async function tableOfClients(): Promise<void> {
  const clients = [jsV1('JSON-RPC'), jsV1('REST'), jsV03, ...(reason === undefined ? pythonClients : [])]
  const rows = new Map(steps.map((step) => [step, [step.name]]))
  for (const kind of clients) {
    console.log(`Running ${kind.name}`)
    const found: string[][] = steps.map(() => [])
    for (const address of addresses) {
      const cells = await runSteps(kind, deployment, address)
      note(`${kind.name}, ${address}`, cells)
      steps.forEach((step, at) => found[at]?.push(shown(cells.get(step))))
    }
    steps.forEach((step, at) => rows.get(step)?.push(found[at]?.join(' ') ?? ''))
  }
  console.log('\nThe calculator, called at: the agent itself, /agents/calculator/, the gateway')
  printTable(['', ...clients.map(({ name }) => name)], [...rows.values()])
}

/** As many requests per operation as make more than 20,000 in total. */
async function httpRequests(perOperation = 80, total = 20_000): Promise<void> {
  const missing = installSchemathesis()
  if (missing !== undefined) console.log(missing)
  else if (!(await fuzz(perOperation, total)))
    failures.push('The HTTP API differs from its OpenAPI document, or fewer than 20,000 requests were sent')
}

async function tableOfAgents(): Promise<void> {
  const callers = [own, jsV1('JSON-RPC'), jsV03]
  const servers = [...jsServers, ...(reason === undefined ? pythonServers : [])]
  const rows = []
  for (const server of servers) rows.push([server.name, ...(await callsTo(server))])
  console.log(
    '\nAgents of A2A SDKs behind the gateway, called in each dialect: steps passed of those that the client has',
  )
  printTable(['', ...callers.map(({ name, dialect }) => `${name} (${dialect})`)], rows)

  async function callsTo(server: ForeignServer): Promise<string[]> {
    console.log(`Running calls to an agent of ${server.name}`)
    await using agent = await server.start()
    await join(agent.url, server.slug, deployment)
    const base = `${deployment.gateway}agents/${server.slug}/`
    const results = []
    for (const kind of callers) {
      const cells = await runStepsAt(kind, { base, token: deployment.token })
      note(`${kind.name} calls ${server.name}`, cells)
      const ran = [...cells.values()].filter((cell) => cell !== undefined)
      results.push(`${ran.filter((cell) => cell === 'ok').length} of ${ran.length}`)
    }
    return results
  }
}

async function tableOfCards(): Promise<void> {
  const rows = []
  for (const verifier of [...jsVerifiers, ...(reason === undefined ? pythonVerifiers : [])]) {
    console.log(`Verifying cards with ${verifier.name}`)
    const found = new Map<string, string[]>()
    for (const address of addresses) {
      const cells = await verifyCards(verifier, deployment, address)
      note(`${verifier.name}, ${address}`, cells)
      for (const [name, cell] of cells) found.set(name, [...(found.get(name) ?? []), shown(cell)])
    }
    for (const [name, cells] of found) rows.push([`${verifier.name}: ${name}`, ...cells])
  }
  console.log('\nSigned cards, each verified by the SDK and refused after a change')
  printTable(['', 'the agent itself', '/agents/calculator/', 'the gateway'], rows)
}

function isReady(name: string, reason: string | undefined): boolean {
  if (reason !== undefined) console.log(`${name} is skipped: ${reason}`)
  return reason === undefined
}

async function tableOfSteps(title: string, clients: readonly TestedClient[]): Promise<void> {
  const rows = []
  for (const client of clients) {
    console.log(`Running ${client.name}`)
    const cells = await runClient(client, deployment)
    const failed = failuresIn(cells)
    failures.push(...failed.map((failure) => `FAILED: ${client.name}, ${failure}`))
    rows.push([client.name, `${cells.size - failed.length} of ${cells.size}`, [...cells.keys()].join('; ')])
  }
  console.log(`\n${title}: steps that pass`)
  printTable(['client', 'passed', 'steps'], rows)
}

function note<Name extends Step | string>(name: string, cells: Map<Name, Cell>): void {
  for (const [step, cell] of cells)
    if (typeof cell === 'object')
      failures.push(`FAILED: ${name}, ${typeof step === 'string' ? step : step.name}: ${cell.failure}`)
}
