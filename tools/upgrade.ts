/**
 * `npm run upgrade -- <commit>`: starts that version of Parley on a new data folder, creates clients, tokens, tasks,
 * webhooks, payment sessions, ratings and a registered agent, stops it, starts this version on the same folder, and
 * compares everything that clients can read. Fails if something is missing or different, or if the folder still
 * contains a secret in plaintext.
 */
import { globSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { ParleyProcess, root } from '@parley/e2e/harness/parley-process'
import { writeAgents } from './exchanges/agents.ts'
import { freePort } from './testing/port.ts'
import { checkOut } from './upgrade/check-out.ts'
import { Content } from './upgrade/content.ts'
import { differences } from './upgrade/differences.ts'
import { readRows, rowDifferences } from './upgrade/sqlite/rows.ts'

const commit = process.argv[2]
if (commit === undefined) {
  console.error('Usage: npm run upgrade -- <commit of the earlier version>')
  process.exitCode = 2
} else process.exitCode = (await upgrade(commit)) ? 0 : 1

async function upgrade(from: string): Promise<boolean> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'parley-upgrade-'))
  await using stack = new AsyncDisposableStack()
  stack.defer(() => rmSync(folder, { recursive: true, force: true }))
  const earlier = stack.use(checkOut(from, path.join(folder, 'earlier'))).folder
  const dataDir = path.join(folder, 'data')
  const port = await freePort()
  const start = async (checkout: string) => {
    const agents = path.join(folder, 'agents')
    await writeAgents(agents, checkout)
    const env = { DATA_DIR: dataDir, LOG_LEVEL: 'warn', ROUTE_MIN_SCORE: '0.2' }
    const command = [process.execPath, path.join(checkout, 'cli', 'bin.mjs')]
    const args = ['up', '--agents', agents]
    const readyOutput = /^curl /m
    const parley = new ParleyProcess({
      name: path.basename(checkout),
      command,
      args,
      cwd: folder,
      port,
      env,
      readyOutput,
    })
    stack.use(parley)
    return parley.start()
  }
  const old = await start(earlier)
  const content = stack.use(await Content.create(old.url, { dataDir, checkout: earlier, folder }))
  const before = await content.read()
  await stop(old)
  const rowsBefore = readRows(dataDir)
  const exposed = plaintextIn(dataDir, content.secrets).length
  const current = await start(root)
  const after = await content.read()
  const faults = [
    ...differences(before, after),
    ...(await content.a2aFaults()),
    ...(await content.newTokenFaults()),
  ]
  await stop(current)
  faults.push(...rowDifferences(rowsBefore, readRows(dataDir)), ...plaintextIn(dataDir, content.secrets))
  console.log(
    `Compared: ${content.summary}; ${Object.keys(rowsBefore).length} tables. Before, ${exposed} files contained secrets in plaintext.`,
  )
  for (const fault of faults) console.log(fault)
  console.log(faults.length === 0 ? 'Nothing was lost.' : `${faults.length} differences.`)
  return faults.length === 0
}

async function stop(parley: ParleyProcess): Promise<void> {
  const code = await parley.stop()
  if (code !== 0) throw new Error(`${parley.name} exited with ${code}: ${parley.output}`)
}

/** Files of the gateway that contain one of the secrets, except those that stay readable. */
function plaintextIn(dataDir: string, secrets: readonly string[]): string[] {
  const readable = [
    'dev-client.json',
    'oauth/operator-client.json',
    'oauth/initial-access-token',
    'oauth/sign-in-code',
  ]
  return globSync('{*,oauth/*}', { cwd: dataDir })
    .filter((name) => statSync(path.join(dataDir, name)).isFile() && !readable.includes(name))
    .flatMap((name) => {
      const bytes = readFileSync(path.join(dataDir, name))
      return secrets.some((secret) => bytes.includes(secret))
        ? [`${name} contains a secret in plaintext`]
        : []
    })
}
