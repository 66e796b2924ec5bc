import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { z } from 'zod'
import { freePort } from '../testing/port.ts'
import { installPython, type PythonEnvironment, pythonOf } from '../testing/python.ts'
import { type KitRun, readRun } from './results.ts'

const agentFolder = path.resolve(import.meta.dirname, '..', 'testing', 'tck-agent')

/** The packages that both branches of the kit import. */
const python = {
  name: 'a2a-tck-1',
  size: '120 MB',
  packages: [
    'pytest',
    'pytest-asyncio',
    'httpx',
    'requests',
    'responses',
    'deepdiff',
    'jsonschema',
    'packaging',
    'PyYAML',
    'python-dotenv',
    'grpcio',
    'protobuf',
    'googleapis-common-protos',
    'pyopenssl',
    'aiohttp',
    'jinja2',
    'proto-plus',
  ],
} satisfies PythonEnvironment

export interface Branch {
  name: '1.0-dev' | '0.3.x'
  /** Arguments of pytest for an agent at this address; `report` is a file name without its extension. */
  args: (url: string, report: string) => string[]
  /** Settings of the agent and of the kit. */
  env: Record<string, string>
}

/** Streams of the branch 0.3.x end after this number of seconds, and long tasks of the agent after twice as many. */
const streamSeconds = '2'

export const branches: readonly Branch[] = [
  {
    name: '1.0-dev',
    args: (url, report) => [
      'tests/compatibility',
      `--sut-host=${url}/a2a/v1`,
      '--transport=jsonrpc,http_json',
      `--compatibility-report=${report}`,
    ],
    env: {},
  },
  {
    name: '0.3.x',
    args: (url) => [
      'tests/mandatory',
      'tests/optional',
      `--sut-url=${url}/a2a/v0.3`,
      '--transports=jsonrpc',
      '--test-scope=all',
    ],
    // A mandatory test reads the capability from the wrong object and expects -32003 of every agent.
    env: { PUSH_NOTIFICATIONS: 'false', TCK_STREAMING_TIMEOUT: streamSeconds },
  },
]

/** Runs one branch of the kit against a new agent. @throws Error if Python or the branch is missing */
export async function runBranch(branch: Branch, checkout: string): Promise<KitRun> {
  const reason = installPython(python)
  if (reason !== undefined) throw new Error(`The test kit cannot run: ${reason}`)
  const folder = mkdtempSync(path.join(tmpdir(), 'parley-tck-'))
  try {
    const commit = commitOf(checkout, branch.name)
    const source = path.join(folder, 'kit')
    mkdirSync(source)
    const archive = execFileSync('git', ['-C', checkout, 'archive', commit], { maxBuffer: 1e9 })
    execFileSync('tar', ['-x', '-C', source], { input: archive })
    await using agent = await startAgent(branch.env)
    const report = path.join(folder, 'report')
    const results = path.join(folder, 'results.jsonl')
    const args = [
      '-W',
      'ignore',
      '-m',
      'pytest',
      ...branch.args(agent.url, report),
      '-q',
      '--tb=line',
      '-p',
      'kit_plugin',
      '-W',
      'ignore',
    ]
    console.log(`Running ${branch.name} of the kit (${commit.slice(0, 12)}) against ${agent.url}.`)
    const kit = spawn(pythonOf(python), args, {
      cwd: source,
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {
        PATH: process.env['PATH'],
        HOME: process.env['HOME'],
        PYTHONPATH: agentFolder,
        PYTHONDONTWRITEBYTECODE: '1',
        A2A_AUTHORIZATION: `Bearer ${agent.token}`,
        KIT_RESULTS: results,
        ...branch.env,
      },
    })
    const output = await outputOf(kit)
    const run = await readRun({ branch: branch.name, commit, results, report: `${report}.json` })
    if (run.tests.length === 0) throw new Error(`the kit ran no test:\n${output}`)
    return run
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The last output of the process, once it has exited. */
async function outputOf(child: ChildProcess): Promise<string> {
  let output = ''
  child.stdout?.on('data', (chunk: Buffer) => (output = (output + chunk.toString()).slice(-4000)))
  await once(child, 'close')
  return output
}

function commitOf(checkout: string, branch: string): string {
  for (const name of [`origin/${branch}`, branch]) {
    try {
      const args = ['-C', checkout, 'rev-parse', '--verify', '--quiet', `${name}^{commit}`]
      return execFileSync('git', args, { encoding: 'utf8' }).trim()
    } catch {
      // The next name may exist.
    }
  }
  throw new Error(`${checkout} has no branch ${branch}. Run \`git fetch origin ${branch}\` there.`)
}

const started = z.object({ url: z.string(), token: z.string() })

/** Starts the agent that the kit expects, with the OAuth server of its token. */
async function startAgent(env: Record<string, string>) {
  const child = spawn(process.execPath, [path.join(agentFolder, 'serve.ts')], {
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], PORT: String(await freePort()), ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  const lines = createInterface({ input: child.stdout })
  for await (const line of lines) {
    const stop = async () => {
      child.kill('SIGTERM')
      await exited
    }
    return { ...started.parse(JSON.parse(line)), [Symbol.asyncDispose]: stop }
  }
  throw new Error('the agent for the test kit did not start')
}
