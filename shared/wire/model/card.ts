import type { Price } from './price.ts'
import type { JsonObject } from './task.ts'

/** The public description of an agent, or of a gateway with the skills of all its agents. */
export interface AgentCard {
  id: string
  did?: string | undefined
  name: string
  description: string
  /** The address that clients use. */
  url: string
  version: string
  author?: string | undefined
  streaming: boolean
  pushNotifications: boolean
  /** Whether the card lists the DID as the key that signs artifacts. */
  signsArtifacts: boolean
  /** Whether `getExtendedCard` returns a card. */
  hasExtendedCard?: boolean | undefined
  skills: readonly CardSkill[]
  prices?: ShownPrices | undefined
  /** Where clients get tokens for their credentials (RFC 6749, section 4.4); undefined if it is not known. */
  tokenUrl?: string | undefined
  /** Extensions of A2A that callers may use, apart from the DID. */
  extensions?: readonly CardExtension[] | undefined
  /** Returns the JSON of a card with signatures, in the dialects whose cards are signed. Absent: it is not signed. */
  sign?: ((card: object) => object) | undefined
  /** Additional fields from the author, which override the others. */
  more?: Readonly<Record<string, unknown>> | undefined
}

/** An extension of A2A. */
export interface CardExtension {
  uri: string
  description: string
  /** Whether clients have to understand it. */
  required?: boolean
  params?: JsonObject
}

export interface CardSkill {
  id: string
  name: string
  description: string
  tags: readonly string[]
  inputModes: readonly string[]
  outputModes: readonly string[]
  version?: string | undefined
  documentationPath?: string | undefined
  /** The JSON Schema of the skill's structured input. */
  inputSchema?: JsonObject | undefined
  prices?: ShownPrices | undefined
  /** The agent's slug, in a gateway's card. */
  agent?: string | undefined
}

export interface ShownPrices {
  ways: readonly Price[]
  /** Whether prices are paid in test money. */
  sandbox: boolean
}
