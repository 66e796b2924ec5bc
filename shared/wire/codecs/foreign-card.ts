import { z } from 'zod'
import { isObject } from '../jsonrpc/envelope.ts'
import { commonCardPath } from './a2a-card.ts'
import { a2aV1 } from './a2a-v1/dialect.ts'
import { a2aV03 } from './a2a-v03/dialect.ts'

/** The paths at which A2A servers serve their card, in the order in which they are tried. Version 1.0 has only the second. */
export const foreignCardPaths = ['/.well-known/agent.json', commonCardPath] as const

/** How an agent expects its clients to authenticate. */
export type AgentSecurity = {
  /** The name of the scheme in the card. */
  scheme?: string
} & (
  | { kind: 'bearer' }
  | { kind: 'apiKey'; in: 'header' | 'query' | 'cookie'; name: string }
  | { kind: 'oauth2'; tokenUrl: string; scopes: string[] }
)

/** How to call an agent, according to its card of A2A 0.2, 0.3 or 1.0. */
export interface ForeignInterface {
  /** The address for JSON-RPC requests. */
  url: string
  /** The name of the dialect. */
  dialect: string
  streaming: boolean
  /**
   * The schemes of the card that this deployment supports and of which one is sufficient. Empty for an agent without
   * authentication.
   */
  security: AgentSecurity[]
  /** Whether the agent requires a scheme, of which none is supported. */
  unsupportedSecurity: boolean
}

const line = z.string().max(2048)
const lines = <T extends z.ZodType>(item: T) => z.array(item).max(100)

const card = z.looseObject({
  did: line.optional(),
  url: line.optional(),
  protocolVersion: line.optional(),
  preferredTransport: line.optional(),
  additionalInterfaces: lines(z.looseObject({ url: line, transport: line })).optional(),
  supportedInterfaces: lines(
    z.looseObject({ url: line, protocolBinding: line, protocolVersion: line.default('1.0') }),
  ).optional(),
  defaultInputModes: lines(z.unknown()).optional(),
  capabilities: z.looseObject({ streaming: z.boolean().default(false) }).optional(),
  securitySchemes: z.record(z.string().max(256), z.unknown()).optional(),
  security: lines(z.unknown()).optional(),
  securityRequirements: lines(z.unknown()).optional(),
})
type Card = z.infer<typeof card>

/** Whether the card is one of A2A and not of this project's own dialect, whose agents have a DID. */
export function isForeignCard(json: Record<string, unknown>): boolean {
  if (typeof json['did'] === 'string') return false
  const { supportedInterfaces: all, protocolVersion: version, defaultInputModes, url } = json
  if (Array.isArray(all)) return true
  if (typeof version === 'string') return /^0\.[23](\.|$)/.test(version)
  // Cards of early versions state no version.
  return typeof url === 'string' && Array.isArray(defaultInputModes)
}

/** Reads a foreign card. Returns a sentence if its agent cannot be called. */
export function readForeignInterface(json: Record<string, unknown>): ForeignInterface | string {
  const read = card.safeParse(json)
  if (!read.success) {
    const [issue] = read.error.issues
    return `The card is not valid: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`
  }
  const found = interfaceIn(read.data)
  if (typeof found === 'string') return found
  return { ...found, streaming: read.data.capabilities?.streaming ?? false, ...securityIn(read.data) }
}

/** If the card has requirements, a scheme that they do not name, or name together with others, is left out. */
function securityIn(given: Card): Pick<ForeignInterface, 'security' | 'unsupportedSecurity'> {
  const { securitySchemes = {}, securityRequirements, security: required = [] } = given
  const supported = new Map<string, AgentSecurity>()
  const add = (name: string, scopes: string[]) => {
    const [read] = schemeIn(securitySchemes[name])
    if (read === undefined || supported.has(name)) return
    const limited = read.kind === 'oauth2' && scopes.length > 0 ? { ...read, scopes } : read
    supported.set(name, { ...limited, scheme: name })
  }
  const alternatives = (securityRequirements ?? required).flatMap(requirementIn)
  if (alternatives.length === 0) for (const name of Object.keys(securitySchemes)) add(name, [])
  for (const alternative of alternatives)
    if (alternative.length === 1) for (const { name, scopes } of alternative) add(name, scopes)
  const isOptional = alternatives.length === 0 || alternatives.some((one) => one.length === 0)
  return { security: [...supported.values()], unsupportedSecurity: !isOptional && supported.size === 0 }
}

const scopesOf = z.union([z.array(line).max(100), z.object({ list: z.array(line).max(100) })])

/** Reads a set of schemes that are required together, in the form of 0.3 or of 1.0. */
function requirementIn(given: unknown): { name: string; scopes: string[] }[][] {
  if (!isObject(given)) return []
  const schemes = isObject(given['schemes']) ? given['schemes'] : given
  const read = Object.entries(schemes).map(([name, value]) => {
    const scopes = scopesOf.safeParse(value).data ?? []
    return { name, scopes: Array.isArray(scopes) ? scopes : scopes.list }
  })
  return [read]
}

function interfaceIn(given: Card): Pick<ForeignInterface, 'url' | 'dialect'> | string {
  const all = given.supportedInterfaces ?? []
  const rpc = all.filter(({ protocolBinding }) => protocolBinding.toUpperCase() === 'JSONRPC')
  const newest = rpc.find(({ protocolVersion }) => /^1(\.|$)/.test(protocolVersion))
  if (newest !== undefined) return { url: newest.url, dialect: a2aV1.name }
  const older = rpc.find(({ protocolVersion }) => /^0\.[23](\.|$)/.test(protocolVersion))
  if (older !== undefined) return { url: older.url, dialect: a2aV03.name }
  const { url, preferredTransport = 'JSONRPC', additionalInterfaces = [] } = given
  const hasTop = all.length === 0 || given.protocolVersion !== undefined
  const isRpc = (transport: string) => transport.toUpperCase() === 'JSONRPC'
  if (hasTop && url !== undefined && isRpc(preferredTransport)) return { url, dialect: a2aV03.name }
  const other = additionalInterfaces.find(({ transport }) => isRpc(transport))
  if (other !== undefined) return { url: other.url, dialect: a2aV03.name }
  const offered = [
    ...all.map(({ protocolBinding: name, protocolVersion }) =>
      isRpc(name) ? `${name} of A2A ${protocolVersion}` : name,
    ),
    ...(given.preferredTransport === undefined ? [] : [given.preferredTransport]),
  ]
  const what =
    offered.length === 0
      ? 'The card lists no interface'
      : `The agent offers ${[...new Set(offered)].join(', ')} only`
  return `${what}. It has to offer JSONRPC of A2A 0.2, 0.3 or 1.0`
}

/** What to do about `unsupportedSecurity`. */
export const unsupportedSecurityText =
  'The agent requires an authentication that is not supported. Enable a bearer token, an API key or OAuth2 client credentials at the agent, and list it in securitySchemes of the card'

const flows = z.looseObject({
  clientCredentials: z.looseObject({
    tokenUrl: line,
    scopes: z.record(z.string().max(256), z.unknown()).default({}),
  }),
})

/** Reads a scheme in the form of OpenAPI (0.3) or of 1.0. Schemes that are not supported are left out. */
function schemeIn(given: unknown): AgentSecurity[] {
  if (!isObject(given)) return []
  const { httpAuthSecurityScheme: http, apiKeySecurityScheme: apiKey, oauth2SecurityScheme: oauth2 } = given
  if (isObject(http)) return schemeIn({ ...http, type: 'http' })
  if (isObject(apiKey)) return schemeIn({ ...apiKey, in: apiKey['location'] ?? apiKey['in'], type: 'apiKey' })
  if (isObject(oauth2)) return schemeIn({ ...oauth2, type: 'oauth2' })
  const { type, scheme, name, in: place } = given
  if (type === 'http') return String(scheme).toLowerCase() === 'bearer' ? [{ kind: 'bearer' }] : []
  if (type === 'apiKey') {
    if (typeof name !== 'string' || name.length > 256) return []
    return place === 'header' || place === 'query' || place === 'cookie'
      ? [{ kind: 'apiKey', in: place, name }]
      : []
  }
  const flow = type === 'oauth2' ? flows.safeParse(given['flows']).data?.clientCredentials : undefined
  return flow === undefined
    ? []
    : [{ kind: 'oauth2', tokenUrl: flow.tokenUrl, scopes: Object.keys(flow.scopes).slice(0, 100) }]
}
