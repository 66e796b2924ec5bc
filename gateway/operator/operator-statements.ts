import { randomUUID } from 'node:crypto'
import {
  isChangingGroup,
  type Operator,
  type OperatorGroup,
  operatorStatementSeconds,
  operatorStatementType,
} from '@parley/kit/auth/operator-statement'
import { RecentMap } from '@parley/kit/did/recent-map'
import type { StatementKeys } from '../oauth/exchange/statement-keys.ts'
import type { AgentEntry } from '../registry/entry.ts'
import { resourceOf } from '../routing/forwarding/caller-token.ts'

/** A statement for reading is used for this long. The rest of its lifetime is left for differing clocks. */
const reusedForMs = 30_000
const statementsMax = 10_000

export interface OperatorStatementsOptions {
  signingKeys: Pick<StatementKeys, 'sign'>
  /** The public URL of the gateway. */
  gatewayUrl: string
}

/** Signs the statements with which the gateway reads agents for operators (spec/operator.md#statements). */
export class OperatorStatements {
  readonly #options: OperatorStatementsOptions
  readonly #signed = new RecentMap<string, { text: Promise<string>; until: number }>(statementsMax)

  constructor(options: OperatorStatementsOptions) {
    this.#options = options
  }

  /** Returns a statement for one agent and one group. Statements of groups that change something are used once. */
  for(entry: AgentEntry, group: OperatorGroup, operator: Operator): Promise<string> {
    const audience = this.#audienceOf(entry)
    if (isChangingGroup(group)) return this.#sign(audience, group, operator)
    const { client, owner = '', texts } = operator
    const name = JSON.stringify([audience, group, client, owner, texts])
    const known = this.#signed.get(name)
    if (known !== undefined && known.until > Date.now()) return known.text
    const text = this.#sign(audience, group, operator)
    this.#signed.set(name, { text, until: Date.now() + reusedForMs })
    text.catch(() => this.#signed.delete(name))
    return text
  }

  /** The name of the agent that no other agent has. The relay serves a foreign agent under its address at the gateway. */
  #audienceOf(entry: AgentEntry): string {
    return entry.relay === undefined ? resourceOf(entry) : `${this.#options.gatewayUrl}/agents/${entry.slug}`
  }

  #sign(audience: string, group: OperatorGroup, { client, owner, texts }: Operator): Promise<string> {
    return this.#options.signingKeys.sign({
      type: operatorStatementType,
      claims: { sub: client, group, texts, jti: randomUUID(), ...(owner !== undefined && { owner }) },
      audience,
      lifetimeSeconds: operatorStatementSeconds,
    })
  }
}
