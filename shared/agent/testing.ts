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
import { acceptingStatements, StatementVerifier } from '@parley/kit/auth/statement'
import { agentIdentity, type Identity } from '@parley/kit/did/identity'
import { type AgentConfig, agentConfig, type PaymentConfig } from '@parley/kit/process/config'
import { makeLog } from '@parley/kit/process/log'
import { resolveAgent } from './author/agent.ts'
import type { AgentDefinition, SkillDefinition } from './author/define-agent.ts'
import { type AgentApp, type AgentAppOptions, startAgentApp } from './server/app.ts'
import { type FakeAgent, fakeDelegation } from './server/delegation/fake-agents.ts'
import { TestIdentityProvider } from './testing/identity-provider.ts'

/** The definition of an agent under test: a handler and any other fields. The name, description and skill have defaults. */
export type TestDefinition = Pick<AgentDefinition, 'handle'> & Partial<AgentDefinition>

/** Options of `testAgent`. */
export interface TestAgentOptions {
  /** Settings as environment variables (spec/operations.md#settings), for example `{TASK_QUEUE_MAX: '2'}`. */
  env?: Record<string, string>
  /** The folder for the key and the store, kept after the test. Default: a temporary folder that is removed with the agent. */
  dataDir?: string
  /** `memory` is faster and writes nothing to disk. Default: the embedded store in `dataDir`. */
  store?: 'embedded' | 'memory'
  /** Skills in addition to those of the definition. */
  moreSkills?: SkillDefinition[]
  /** How long running handlers may take to finish on disposal, in milliseconds. Default 10,000. */
  drainMs?: number
  /** The gateway at which the agent claims signed requests (spec/authentication.md#replay). Default: none. */
  signatureClaims?: (identity: Identity) => AgentAppOptions['signatureClaims']
  /** An OAuth server that agents share. Default: a new server, which is closed with the agent. */
  identityProvider?: TestIdentityProvider
  /** Shorter timeouts for payments, in milliseconds. */
  paymentTiming?: NonNullable<PaymentConfig['timing']>
  /**
   * Fakes of the agents that the handler calls, by slug; `-` is the one that `best` calls (spec/delegation.md#tests):
   * `{calculator: ({ text }) => (text === '6*7' ? '42' : 'unknown')}`. Default: none.
   */
  agents?: Record<string, FakeAgent>
  /** How the agent calls others through a gateway. Default: not at all. */
  delegation?: (identity: Identity) => AgentAppOptions['delegation']
  /** Receives the log lines. The level is `silent` unless `env` sets LOG_LEVEL. */
  logTo?: { write(line: string): void }
}

const echoSkill: SkillDefinition = { id: 'test', name: 'Test', description: 'The skill under test' }

/**
 * Starts an agent server on a free loopback port, with an OAuth server for its callers:
 *
 * ```ts
 * await using agent = await testAgent({ handle: ({ text }) => text })
 * const task = await agent.caller('alice').sendAndWait('hello')
 * ```
 *
 * Dispose the result to stop both.
 * @throws Error when the definition or a setting is invalid
 */
export async function testAgent(
  definition: TestDefinition,
  options: TestAgentOptions = {},
): Promise<TestAgent> {
  await using stack = new AsyncDisposableStack()
  const dataDir = options.dataDir ?? (await temporaryFolder(stack))
  const identityProvider = options.identityProvider ?? stack.use(await TestIdentityProvider.start())
  const client = { clientId: 'agent', clientSecret: 'secret', timeoutMs: 3000 }
  const provider = stack.use(new HttpIntrospector({ url: identityProvider.url, ...client }))
  const clientKeys = stack.use(
    new HttpClientKeys({ url: `${identityProvider.url}/clients/{client_id}`, ...client }),
  )
  const agent = resolveAgent(
    { name: 'test agent', description: 'An agent under test', skills: [echoSkill], ...definition },
    options.moreSkills,
  )
  const { config, secrets } = agentConfig({
    PORT: '0',
    DATA_DIR: dataDir,
    LOG_LEVEL: 'silent',
    ...(options.store === 'memory' && { STORE_URL: 'memory:' }),
    ...options.env,
  })
  const identity = await agentIdentity(agent.author, path.join(dataDir, 'agent.key.json'), config)
  const { gatewayUrl } = config
  const introspector =
    gatewayUrl === undefined ? provider : acceptingStatements(provider, new StatementVerifier(gatewayUrl))
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
  if (options.agents !== undefined) appOptions.delegation = fakeDelegation(options.agents)
  else if (options.delegation !== undefined) appOptions.delegation = options.delegation(identity)
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

/** A running agent server, made by `testAgent`. */
export class TestAgent implements AsyncDisposable {
  /** Its address, for example `http://127.0.0.1:40001`. */
  readonly url: string
  /** Its DID (spec/did.md#did). */
  readonly did: string
  /** The server, which tests of its parts can access. */
  readonly app: AgentApp
  /** The OAuth server that issues the tokens of its callers. */
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

  /**
   * Creates a client with a new token.
   * @param clientId the ID of the OAuth client that owns the tasks; a DID for signed requests
   * @param scope space-separated scopes (spec/authentication.md#scopes). Default `agent:read agent:write`
   */
  caller(clientId: string, scope = 'agent:read agent:write'): TestCaller {
    return new TestCaller({ url: this.url, token: this.identityProvider.issue(clientId, { scope }) })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#open.disposeAsync()
  }
}

/** A client for an agent under test, with a token. Its methods throw `RpcError` for an error response. */
export class TestCaller extends AgentClient {
  /** Its bearer token. */
  readonly token: string

  constructor(options: { url: string; token: string }) {
    super(options)
    this.token = options.token
  }

  /**
   * Sends a message and waits until the task has ended or paused.
   * @throws RpcError for an error response; DOMException TimeoutError after 20 s
   */
  async sendAndWait(message: string | OutgoingMessage, configuration?: SendConfiguration): Promise<WireTask> {
    const task = await this.send(message, configuration)
    return this.wait(task.id, { signal: AbortSignal.timeout(20_000) })
  }
}

export type { FakeAgent, FakeMessage } from './server/delegation/fake-agents.ts'
