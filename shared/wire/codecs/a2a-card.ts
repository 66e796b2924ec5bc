import type { CardSkill } from '../model/card.ts'
import { basePath as v1Path } from './a2a-v1/name.ts'
import { basePath as v03Path } from './a2a-v03/name.ts'

/** The fields that cards of several dialects share. */

/** The path at which clients of every version of A2A look for the card. */
export const commonCardPath = '/.well-known/agent-card.json'

/** An address of an agent that speaks A2A, as cards list it. */
export type AgentInterface = { url: string; protocolBinding: string; protocolVersion: string }

/** The scopes that cards name, with a description for people. */
export const cardScopes = { 'agent:read': 'Read tasks and cards', 'agent:write': 'Send messages' }

/** The paths below an agent's address, the preferred one first. */
const interfaces = [
  { path: v1Path, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
  { path: v1Path, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
  { path: v03Path, protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
] as const

/** Returns the A2A interfaces of the agent at the URL, as cards of A2A 1.0 list them. */
export function interfacesAt(url: string): AgentInterface[] {
  const base = url.replace(/\/+$/, '')
  return interfaces.map(({ path, ...rest }) => ({ url: base + path, ...rest }))
}

/** The fields by which clients of A2A 0.3 find their interface in a card. Its `url` may be that of another dialect. */
export function interfaceFieldsAt(url: string) {
  const ofVersion = interfacesAt(url).filter(({ protocolVersion }) => protocolVersion === '0.3')
  return {
    preferredTransport: 'JSONRPC',
    additionalInterfaces: ofVersion.map(({ url, protocolBinding }) => ({ url, transport: protocolBinding })),
  }
}

/** Writes a skill for cards of A2A. The protocol requires at least one tag. Without modes, those of the card apply. */
export function a2aSkillOut({ id, name, description, tags, inputModes, outputModes }: CardSkill) {
  return {
    id,
    name,
    description,
    tags: tags.length === 0 ? [id] : tags,
    inputModes: inputModes.length === 0 ? undefined : inputModes,
    outputModes: outputModes.length === 0 ? undefined : outputModes,
  }
}

/** The default modes of a card of A2A. The protocol requires at least one of each. */
export function a2aModesOf(skills: readonly CardSkill[]) {
  return {
    defaultInputModes: someModes(skills.flatMap((skill) => skill.inputModes)),
    defaultOutputModes: someModes(skills.flatMap((skill) => skill.outputModes)),
  }
}

function someModes(modes: readonly string[]): string[] {
  return modes.length === 0 ? ['text/plain'] : [...new Set(modes)]
}
