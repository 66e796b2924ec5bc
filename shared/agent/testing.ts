import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import {
  AgentClient,
  type OutgoingMessage,
  type SendConfiguration,
  type WireTask,
} from '@parley/client/internal/client'
import { HttpClientKeys } from '@parley/kit/auth/client-keys'
import { HttpIntrospector } from '@parley/kit/auth/introspection'
import { agentIdentity, type Identity } from '@parley/kit/did/identity'
import { type AgentConfig, agentConfig, type PaymentConfig } from '@parley/kit/process/config'
import { makeLog } from '@parley/kit/process/log'
import { resolveAgent } from './author/agent.ts'
import type { AgentDefinition, SkillDefinition } from './author/define-agent.ts'
import { type AgentApp, type AgentAppOptions, startAgentApp } from './server/app.ts'
import { TestIdentityProvider } from './testing/identity-provider.ts'

/** What a test must say of its agent; the rest is filled in. */
export type TestDefinition = Pick<AgentDefinition, 'handle'> & Partial<AgentDefinition>

export interface TestAgentOptions {
  /** Settings as an environment would give them, for example `{TASK_QUEUE_MAX: '2'}`. */
  env?: Record<string, string>
  /** Kept after the test; default: a temporary folder that goes with the agent. */
  dataDir?: string
  /** `memory` is faster and keeps nothing on the disk. Default: the embedded store in `dataDir`. */
  store?: 'embedded' | 'memory'
  /** Skills read from files (`readSkillFiles`). */
  moreSkills?: SkillDefinition[]
  drainMs?: number
  /** The gateway at which it claims signed requests. */
  signatureClaims?: (identity: Identity) => AgentAppOptions['signatureClaims']
  /** An OAuth server that others use too; default: one of its own. */
  identityProvider?: TestIdentityProvider
  /** How long payments wait, for tests that do not want to wait as long. */
  paymentTiming?: NonNullable<PaymentConfig['timing']>
  /** Takes the lines of the log; LOG_LEVEL is `silent` unless `env` says otherwise. */
  logTo?: { write(line: string): void }
}

const echoSkill: SkillDefinition = { id: 'test', name: 'Test', description: 'What the test needs' }

/**
 * A whole agent server on a free port of this machine, with an OAuth server of its own:
 *
 * ```ts
 * await using agent = await testAgent({ handle: ({ text }) => text })
 * const task = await agent.caller('alice').sendAndWait('hello')
 * ```
 */
export async function testAgent(
  definition: TestDefinition,
  options: TestAgentOptions = {},
): Promise<TestAgent> {
  await using stack = new AsyncDisposableStack()
  const dataDir = options.dataDir ?? (await temporaryFolder(stack))
  const identityProvider = options.identityProvider ?? stack.use(await TestIdentityProvider.start())
  const client = { clientId: 'agent', clientSecret: 'secret', timeoutMs: 3000 }
  const introspector = stack.use(new HttpIntrospector({ url: identityProvider.url, ...client }))
  const clientKeys = stack.use(
    new HttpClientKeys({ url: `${identityProvider.url}/clients/{client_id}`, ...client }),
  )
  const agent = resolveAgent(
    { name: 'test agent', description: 'An agent under test', skills: [echoSkill], ...definition },
    options.moreSkills,
  )
  const identity = await agentIdentity(agent.author, path.join(dataDir, 'agent.key.json'))
  const { config, secrets } = agentConfig({
    PORT: '0',
    DATA_DIR: dataDir,
    LOG_LEVEL: 'silent',
    ...(options.store === 'memory' && { STORE_URL: 'memory:' }),
    ...options.env,
  })
  const destination = options.logTo === undefined ? {} : { destination: options.logTo }
  const log = makeLog({ level: config.logLevel, name: agent.name, ...destination })
  const { redisUrl, storeUrl, webhookToken } = secrets
  const appOptions: AgentAppOptions = {
    agent,
    identity,
    config: withTiming(config, options.paymentTiming),
    introspector,
    clientKeys,
    log,
    redisUrl,
    storeUrl,
    webhookToken,
  }
  const claims = options.signatureClaims?.(identity)
  if (claims !== undefined) appOptions.signatureClaims = claims
  if (options.drainMs !== undefined) appOptions.drainMs = options.drainMs
  const app = stack.use(await startAgentApp(appOptions))
  return new TestAgent({ app, did: identity.did, identityProvider, open: stack.move() })
}

function withTiming(config: AgentConfig, timing: PaymentConfig['timing']): AgentConfig {
  return timing === undefined ? config : { ...config, payments: { ...config.payments, timing } }
}

async function temporaryFolder(stack: AsyncDisposableStack): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'parley-test-'))
  stack.defer(() => rm(folder, { recursive: true, force: true }))
  return folder
}

export class TestAgent implements AsyncDisposable {
  readonly url: string
  readonly did: string
  readonly app: AgentApp
  readonly identityProvider: TestIdentityProvider
  readonly #open: AsyncDisposableStack

  constructor(parts: {
    app: AgentApp
    did: string
    identityProvider: TestIdentityProvider
    open: AsyncDisposableStack
  }) {
    this.app = parts.app
    this.url = parts.app.address
    this.did = parts.did
    this.identityProvider = parts.identityProvider
    this.#open = parts.open
  }

  /** A caller with a token of its own; `scope` as in OAuth, space separated. */
  caller(clientId: string, scope = 'agent:read agent:write'): TestCaller {
    return new TestCaller({ url: this.url, token: this.identityProvider.issue(clientId, { scope }) })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#open.disposeAsync()
  }
}

export class TestCaller extends AgentClient {
  readonly token: string

  constructor(options: { url: string; token: string }) {
    super(options)
    this.token = options.token
  }

  /** Sends, and waits until the task has ended or paused. */
  async sendAndWait(message: string | OutgoingMessage, configuration?: SendConfiguration): Promise<WireTask> {
    const task = await this.send(message, configuration)
    return this.wait(task.id, { signal: AbortSignal.timeout(20_000) })
  }
}
