import type { Signer } from '@parley/client'
import type { TaskRecord } from '@parley/engine/store/store'
import type { Identity } from '@parley/kit/did/identity'
import type { Agents } from '../../author/agents.ts'
import { NoGatewayError } from '../../author/call-errors.ts'
import type { CallingRun, Delegation, RunCalls } from '../../author/delegation.ts'
import { AgentCalls } from './agent-calls.ts'
import { AgentConnection } from './agent-connection.ts'
import { AuthoritySeal } from './authority-seal.ts'
import { type ExchangeClient, ExchangedTokens } from './exchanged-tokens.ts'

/** The gateway at which this agent calls others, and the OAuth client that acts for its callers. */
export type DelegationOptions = ExchangeClient

/** Calls other agents through the gateway, with the authority that each task keeps. */
export class GatewayDelegation implements Delegation {
  readonly seal: AuthoritySeal
  readonly #options: DelegationOptions
  readonly #tokens: ExchangedTokens
  readonly #secret: Uint8Array
  readonly #signer: Signer
  readonly #requireSignatures = new Set<string>()

  constructor(options: DelegationOptions, identity: Pick<Identity, 'did' | 'key'>) {
    this.seal = new AuthoritySeal(identity.key)
    this.#options = options
    this.#tokens = new ExchangedTokens(options)
    this.#secret = identity.key.deriveSecret('parley call ids')
    this.#signer = identity
  }

  open(run: CallingRun): RunCalls {
    const { clientId } = this.#options
    return new AgentCalls({ run, clientId, secret: this.#secret, connection: this.connectionOf(run.task) })
  }

  /** Undefined if the task has no authority, or none that this agent can read. */
  connectionOf({ authority }: Pick<TaskRecord, 'authority'>): AgentConnection | undefined {
    const subject = authority === undefined ? undefined : this.seal.open(authority)
    if (subject === undefined) return undefined
    return new AgentConnection({
      gatewayUrl: this.#options.gatewayUrl,
      tokens: this.#tokens,
      signer: this.#signer,
      requireSignatures: this.#requireSignatures,
      subject,
    })
  }
}

/** For an agent without a gateway or an OAuth client. Every call fails. */
export const noDelegation: Delegation = {
  open: ({ task }) => ({ agents: noAgents, children: task.children ?? [] }),
}

const noAgents: Agents = {
  call: (agent) => Promise.reject(noGateway(agent)),
  best: () => Promise.reject(noGateway('-')),
  // oxlint-disable-next-line require-yield -- every call fails
  async *stream(agent) {
    throw noGateway(agent)
  },
  children: [],
}

function noGateway(agent: string): NoGatewayError {
  return new NoGatewayError(
    'This agent has no gateway, so it cannot call other agents: set GATEWAY_URL and OAUTH_INITIAL_TOKEN, or pass fake agents to testAgent',
    { agent },
  )
}
