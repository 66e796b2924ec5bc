import { type StdioOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { startDeployment } from '../interop/deployment.ts'
import { installPython, isInstalled, type PythonEnvironment, pythonOf } from '../testing/python.ts'
import { strictDocument } from './strict-document.ts'

/** PyPI `schemathesis`, MIT. */
const schemathesis: PythonEnvironment = {
  name: 'schemathesis-4.32.5',
  packages: ['schemathesis==4.32.5'],
  size: '80 MB',
}

/** Whether suites can run whose titles contain `(needs schemathesis)`. */
export const schemathesisIsThere = () => isInstalled(schemathesis)

/** @returns why the package is not installed; undefined if it is */
export function installSchemathesis(): string | undefined {
  const reason = installPython(schemathesis)
  return reason && `${schemathesis.name} is not installed: ${reason}. The suite that needs it is skipped.`
}

/** No 500, no status, content type or body that the document does not describe. */
const checks = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_schema_conformance',
]

export interface SchemathesisRun {
  /** The server with the document, with a final slash. */
  url: string
  /** The tokens of successive requests, in turn; null for an anonymous request. */
  tokens: readonly (string | null)[]
  /** The maximum number of requests per operation. */
  examples: number
  /** Whether a field of a response that is not described is a failure. Default false. */
  strict?: boolean
  /** Default: random. */
  seed?: number | undefined
}

export interface SchemathesisResult {
  requests: number
  operations: number
  /** The number of different failures, and of operations with an error, such as no response in time. */
  findings: number
  /** The report, with the requests that reproduce the failures; empty if there are none. */
  failures: string
}

/** Sends valid and invalid requests to every operation of the server's OpenAPI document. Excludes no operation. */
export async function runSchemathesis({
  url,
  tokens,
  examples,
  strict = false,
  seed,
}: SchemathesisRun): Promise<SchemathesisResult> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'parley-schemathesis-'))
  try {
    const options = {
      phases: 'fuzzing',
      'max-examples': examples,
      checks: checks.join(),
      workers: 1,
      'request-timeout': 20,
      warnings: 'off',
      'generation-database': 'none',
      ...(seed !== undefined && { seed }),
    }
    const args = Object.entries(options).map(([name, value]) => `--${name}=${value}`)
    const flags = ['--continue-on-failure', '--no-shrink']
    const file = path.join(folder, 'openapi.json')
    const served = await fetch(`${url}openapi.json`)
    const json: unknown = await served.json()
    await writeFile(file, JSON.stringify(strict ? strictDocument(json) : json))
    const config = ['--config-file', path.join(import.meta.dirname, 'schemathesis.toml')]
    const command = ['-m', 'schemathesis.cli', ...config, 'run', file, '--url', url, ...flags, ...args]
    const env = {
      ...process.env,
      SCHEMATHESIS_HOOKS: 'hooks',
      PYTHONPATH: import.meta.dirname,
      PYTHONDONTWRITEBYTECODE: '1',
      CREDENTIALS: JSON.stringify(tokens),
    }
    const stdio: StdioOptions = ['ignore', 'pipe', 'pipe']
    const child = spawn(pythonOf(schemathesis), command, { cwd: folder, env, stdio })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (chunk: Buffer) => (output += chunk.toString()))
    const [code] = await once(child, 'close')
    const count = (kind: RegExp) => Number(kind.exec(output)?.[1] ?? 0)
    const findings = count(/(\d+) unique failure/) + count(/(\d+) errors? in [\d.]+s/)
    return {
      requests: count(/(\d+) generated/),
      operations: count(/Tested: (\d+)/),
      findings,
      failures: code === 0 ? '' : output,
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** A deployment with an agent without a price and one with a price, both of which answer without delay. */
export async function startFuzzedDeployment() {
  const agents = ['quick', 'paid'].map((name) => path.join(import.meta.dirname, 'agents', name))
  const deployment = await startDeployment(agents)
  const { gateway, token } = deployment
  const limited = await deployment.limitedToken()
  /** Half of the requests have a token with all scopes of a client. */
  const at = async (slug: string, name: string) => {
    const own = await deployment.tokenFor(slug)
    return { name, url: deployment.direct(slug), tokens: [own, limited, own, null] }
  }
  return {
    gateway: { name: 'gateway', url: gateway, tokens: [token, limited, token, null] },
    agents: [await at('quick', 'agent without a price'), await at('paid', 'agent with a price')],
    [Symbol.asyncDispose]: () => deployment[Symbol.asyncDispose](),
  }
}

/**
 * Prints the number of requests to each server, the number of different failures, and the report of each failure. The gateway and
 * the agents are called at the same time.
 * @param atLeast fewer requests in total are a failure
 * @returns whether there was no failure
 */
export async function fuzz(perOperation: number, atLeast = 0): Promise<boolean> {
  await using deployment = await startFuzzedDeployment()
  const { gateway, agents } = deployment
  const results = (await Promise.all([requestsTo([gateway]), requestsTo(agents)])).flat()
  const total = results.reduce((sum, { requests }) => sum + requests, 0)
  console.log(`${total} requests in total`)
  return total >= atLeast && results.every(({ failures }) => failures === '')

  async function requestsTo(servers: typeof agents): Promise<SchemathesisResult[]> {
    const results = []
    for (const server of servers) {
      const start = performance.now()
      const result = await runSchemathesis({ ...server, examples: perOperation, strict: true })
      const { requests, operations, findings, failures } = result
      const minutes = ((performance.now() - start) / 60_000).toFixed(1)
      console.log(
        `${server.name}: ${requests} requests to ${operations} operations, ${findings} findings (${minutes} min)`,
      )
      if (failures !== '') console.log(failures)
      results.push(result)
    }
    return results
  }
}
