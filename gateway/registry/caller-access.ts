import type { Authenticator, RequestHead } from '@parley/kit/auth/authenticate'
import type { Caller } from '@parley/kit/auth/caller'
import { canonicalResource } from '@parley/kit/auth/protected-resource'
import type { Audit } from '@parley/kit/process/audit'
import { ParleyError } from '@parley/wire/errors'
import type { AgentDirectory } from './agent-policies.ts'
import type { AgentEntry } from './entry.ts'
import { anonymousCaller, type PolicyCaller, type PolicyDecision, type PolicyParty } from './policy.ts'
import type { Registry } from './registry.ts'

/** What policies need to know about an OAuth client. */
export interface ClientFacts {
  /** Tags that an operator has given to the client. */
  tags: readonly string[]
  /** Whether the client belongs to the operators of the gateway. */
  operator: boolean
}

export interface CallerAccessOptions {
  registry: Registry
  /** The public URL of the gateway. */
  gatewayUrl: string
  /** Undefined if the OAuth server keeps no facts about clients. Tags then match no caller. */
  factsOf?: ((clientId: string) => Promise<ClientFacts>) | undefined
  audit: Audit
}

type Identified = Pick<Caller, 'subject' | 'delegate' | 'scopes'>

/** An agent that a request names, and the check of the skills that it names if the caller may not use all of them. */
interface NamedAgent {
  entry: AgentEntry
  requireSkill?: (skill: string) => Promise<void>
}

/** The origin of a request, for the audit log. */
export interface RequestOrigin {
  ip: string
  id: string
  callerId?: string | undefined
}

const noFacts: ClientFacts = { tags: [], operator: false }

/** Applies the policies of the registry to the callers of this gateway (spec/policy.md#evaluation). */
export class CallerAccess {
  readonly #options: CallerAccessOptions

  constructor(options: CallerAccessOptions) {
    this.#options = options
  }

  /** Whether any agent has a policy. While none has, the registry is the same for every caller. */
  get applies(): boolean {
    return this.#options.registry.policies.size > 0
  }

  /** Returns the agents that the caller may see. Undefined is a caller without a token. */
  async agentsFor(caller: Identified | undefined): Promise<AgentDirectory> {
    const { registry } = this.#options
    if (!this.applies) return registry
    return registry.policies.view(await this.policyCaller(caller), registry)
  }

  /**
   * Returns the sender of a request to a public route, if any policy applies. A sender without a valid token is
   * anonymous, whatever is wrong with the token, so that the response does not show whether policies apply.
   */
  async callerOf(
    request: RequestHead,
    authenticator: Pick<Authenticator, 'authenticate'>,
  ): Promise<Caller | undefined> {
    if (!this.applies || request.headers.authorization === undefined) return undefined
    return authenticator.authenticate(request).catch(() => undefined)
  }

  /**
   * Finds the agent that a request names, for a sender that the agent itself will authenticate. Requests for agents
   * without a policy need no introspection here.
   * @param identify reads the sender from its token
   * @returns undefined if the agent does not exist or the sender may not see it
   */
  findNamed(
    slug: string,
    request: RequestHead & RequestOrigin,
    identify: () => Identified | Promise<Identified>,
  ): NamedAgent | undefined | Promise<NamedAgent | undefined> {
    const found = this.#options.registry.bySlug(slug)
    if (!this.applies || (found !== undefined && found.policy === undefined)) return found && { entry: found }
    return this.#findVisible(slug, request, identify)
  }

  async #findVisible(
    slug: string,
    request: RequestHead & RequestOrigin,
    identify: () => Identified | Promise<Identified>,
  ): Promise<NamedAgent | undefined> {
    // An unknown agent costs the same time as a hidden one.
    const isAnonymous = request.headers.authorization === undefined
    const caller = isAnonymous ? undefined : await identified(identify)
    const agents = await this.agentsFor(caller)
    const entry = agents.bySlug(slug)
    if (entry === undefined) {
      await this.auditHidden('agents.call', slug, caller, request)
      return undefined
    }
    if (agents.restrictions?.limited.has(entry.id) !== true) return { entry }
    return { entry, requireSkill: (skill) => this.requireSkill(caller, entry, skill) }
  }

  async policyCaller(caller: Identified | undefined): Promise<PolicyCaller> {
    if (caller === undefined) return anonymousCaller
    const { subject, delegate, scopes } = caller
    const { operator, ...party } = await this.#partyOf(subject)
    if (delegate !== undefined) {
      const { operator: _, ...acting } = await this.#partyOf(delegate)
      // An agent that acts for an operator is still subject to the policies.
      return { ...party, delegate: acting }
    }
    return scopes.has('agent:admin') || operator ? { ...party, operator: true } : party
  }

  /** Returns the caller that a rule would name: a client with its tags, a client with one tag, or any client. */
  async callerNamed(name: string): Promise<PolicyCaller> {
    if (name === '*' || name === 'anonymous') return { tags: [] }
    if (name === 'authenticated') return { id: '', tags: [] }
    if (name.startsWith('tag:')) return { id: '', tags: [name.slice('tag:'.length)] }
    const id = name.startsWith('client:') ? name.slice('client:'.length) : name
    const { operator, ...party } = await this.#partyOf(id)
    return operator ? { ...party, operator } : party
  }

  /** Decides whether the caller may call the agent at all. A caller that may use none of its skills may not. */
  async decide(caller: Identified | undefined, entry: AgentEntry): Promise<PolicyDecision> {
    const policy = this.#options.registry.policies.of(entry)
    if (policy === undefined) return { allowed: true, rule: 'no policy' }
    return policy.decideAccess(await this.policyCaller(caller), entry.skills)
  }

  /**
   * Decides whether a token for this server (RFC 8707) may be issued to the caller. Agents that do not exist are refused
   * like hidden ones if the resource names them by their address at the gateway.
   */
  async mayGetToken(resource: string, caller: Identified): Promise<boolean> {
    const { registry, gatewayUrl } = this.#options
    const slug = agentSlugIn(resource, gatewayUrl)
    const entry = slug === undefined ? this.#entryNamed(resource.replace(/\/+$/, '')) : registry.bySlug(slug)
    if (entry === undefined) return slug === undefined
    return this.#decideAndAudit('oauth.resource', caller, entry)
  }

  /** Returns the agent that a resource of this gateway names. Undefined for the gateway and for other servers. */
  agentAt(resource: string): AgentEntry | undefined {
    const { registry, gatewayUrl } = this.#options
    const slug = agentSlugIn(resource, gatewayUrl)
    return slug === undefined ? undefined : registry.bySlug(slug)
  }

  /** Decides whether a token is active at the agent with this client id. */
  async mayUseAt(agentClientId: string, caller: Identified): Promise<boolean> {
    if (!this.applies || !agentClientId.startsWith('did:')) return true
    const entry = this.#options.registry.find(agentClientId)
    return entry === undefined || this.#decideAndAudit('oauth.introspect', caller, entry)
  }

  /**
   * Checks that the caller may use the skill of an agent that it sees.
   * @throws ParleyError InsufficientPermissions with `data.reason` `policy` and the deciding `data.rule`
   */
  async requireSkill(caller: Identified | undefined, entry: AgentEntry, skill: string): Promise<void> {
    const policy = this.#options.registry.policies.of(entry)
    if (policy === undefined) return
    const { allowed, rule } = policy.decide(await this.policyCaller(caller), skill)
    if (allowed) return
    throw new ParleyError('InsufficientPermissions', {
      message: `The policy of agent ${entry.slug} does not allow you to use the skill ${skill}: ${rule}`,
      data: { reason: 'policy', agent: entry.slug, skill, rule },
    })
  }

  /**
   * Records that a caller named an agent that the policy hides from it, for which the caller gets the same response as
   * for an unknown agent. Records nothing for an agent that does not exist.
   */
  async auditHidden(action: string, name: string, caller: Identified | undefined, origin: RequestOrigin) {
    const entry = this.applies ? this.#options.registry.find(name) : undefined
    if (entry !== undefined) await this.#decideAndAudit(action, caller, entry, origin)
  }

  #entryNamed(name: string): AgentEntry | undefined {
    const { registry } = this.#options
    return name.startsWith('did:') ? registry.find(name) : registry.policies.at(name)
  }

  async #decideAndAudit(
    action: string,
    caller: Identified | undefined,
    entry: AgentEntry,
    origin?: RequestOrigin,
  ): Promise<boolean> {
    const { allowed, rule } = await this.decide(caller, entry)
    if (allowed) return true
    this.#options.audit.record({
      who: caller?.subject ?? origin?.callerId,
      address: origin?.ip,
      action,
      target: entry.slug,
      allowed: false,
      reason: `policy: ${rule}`,
      requestId: origin?.id,
    })
    return false
  }

  async #partyOf(id: string): Promise<PolicyParty & { id: string; operator: boolean }> {
    const { tags, operator } = (await this.#options.factsOf?.(id)) ?? noFacts
    return { id, tags, operator }
  }
}

/** Returns the slug in the address of an agent or of its MCP endpoint. Undefined for addresses that are not below `/agents`. */
function agentSlugIn(resource: string, gatewayUrl: string): string | undefined {
  const name = canonicalResource(resource)
  const below = `${canonicalResource(gatewayUrl)}/agents/`
  return name.startsWith(below) ? name.slice(below.length).replace(/\/mcp$/, '') : undefined
}

async function identified(identify: () => Identified | Promise<Identified>): Promise<Identified | undefined> {
  try {
    return await identify()
  } catch {
    return undefined
  }
}
