import { didPart } from '@parley/kit/did/did'
import { type GatewayIdentitySettings, gatewayIdentity } from '@parley/kit/did/identity'
import { readKeyList } from '@parley/kit/did/key-list'
import type { AllowedHosts } from '@parley/kit/net/allowed-hosts'
import {
  allowedHosts,
  type CommonConfig,
  commonConfig,
  databaseUrl,
  localHosts,
  trimSlash,
} from '@parley/kit/process/config'
import { bytesOf } from '@parley/kit/process/secret-file'
import {
  ConfigError,
  commonSettings,
  deprecatedSettings,
  gatewaySettings,
  readSettings,
  type Values,
} from '@parley/kit/process/settings'
import { telemetryOptions } from '@parley/kit/process/telemetry-settings'
import type { TelemetryOptions } from '@parley/kit/telemetry/telemetry'
import { routeMinScore } from '@parley/negotiation/score/weights'

/** The frozen configuration of the gateway. */
export interface GatewayConfig extends CommonConfig {
  /** Whether the gateway runs its own OAuth server. False if OAUTH_ISSUER is set. */
  embeddedOAuth: boolean
  /** Whether public clients may register at the embedded OAuth server without an initial access token. */
  openRegistration: boolean
  /** Whether the embedded OAuth server reads the metadata documents of clients. */
  clientDocuments: boolean
  /** Whether registered agents receive work without admission by an operator. */
  registryOpen: boolean
  /** Manifests of other publishers, or servers that have one at the well-known path. */
  catalogSources: readonly string[]
  /** Hosts that are exempt from the private-address guard for registrations. */
  registryAllowedHosts: AllowedHosts
  /** The minimum score (0 to 1) that an agent needs to receive a message that names no agent. */
  routeMinScore: number
  /** Whether routing learns from task outcomes. */
  routeLearning: boolean
  /** SENTENCE_ENCODER. */
  sentenceEncoder: boolean
  /** How long the gateway waits for each example that it sends to a new agent. Undefined if it sends none. */
  exampleTimeoutMs: number | undefined
  /** How long the calls of MCP clients wait for their tasks, in milliseconds. */
  mcp: { taskAfterMs: number; answerAfterMs: number }
  /** Whether operators see the texts of other callers' tasks. */
  operatorReadsTexts: boolean
  /** Whether people can use the console in a browser. */
  console: boolean
  auditRetentionDays: number
  isolation: IsolationSettings
}

/** How supervised agents are isolated. */
export interface IsolationSettings {
  mode: 'auto' | 'user' | 'namespace' | 'permission' | 'none'
  /** First and last id of the users that agents may run as. */
  uids: readonly [first: number, last: number]
  /** Destinations of agents that declare none, as `host:port`. Undefined if they are not limited. */
  egress?: readonly string[] | undefined
  /** Limits per agent. 0 means unlimited. */
  limits: AgentLimits
}

export interface AgentLimits {
  /** Of all its processes together. */
  memoryMb: number
  /** Open files per process. */
  files: number
  /** Processes and threads. */
  processes: number
}

export interface GatewaySecrets {
  /** STORE_URL of a MongoDB database, which may contain a password. */
  storeUrl: string | undefined
  /** REDIS_URL, which may contain a password. */
  redisUrl: string | undefined
  oauthClientSecret: string | undefined
  /** The keys that encrypt stored secrets. If `current` is undefined, the key is in a file. */
  masterKey: { current: Uint8Array | undefined; previous: Uint8Array | undefined }
  /** Undefined if the gateway has no identity. */
  identity: GatewayIdentitySettings | undefined
  /** Undefined if agents are matched only by words. */
  embeddings: { url: string; model: string; key?: string } | undefined
  /** Undefined if nothing is exported. Contains the headers for the collector. */
  telemetry: TelemetryOptions | undefined
}

export interface Settings {
  config: GatewayConfig
  secrets: GatewaySecrets
  /** The whole environment, of which the supervisor passes parts to agents. */
  environment: NodeJS.ProcessEnv
}

const table = { ...commonSettings, ...gatewaySettings }
type GatewayValues = Values<typeof table>

/** Reads the gateway's settings. @throws ConfigError with one sentence per invalid setting */
export function gatewayConfig(environment: NodeJS.ProcessEnv = process.env): Settings {
  const values = readSettings(table, environment)
  const common = commonConfig(values)
  const { issuer, clientId } = common.oauth
  if (issuer === undefined && common.production && values.PARLEY_EMBEDDED_OAUTH !== true) {
    throw new ConfigError([
      'NODE_ENV is production: set OAUTH_ISSUER to your OAuth 2.0 server, or PARLEY_EMBEDDED_OAUTH=yes to use the embedded one.',
    ])
  }
  if (issuer !== undefined && (clientId === undefined || values.OAUTH_CLIENT_SECRET === undefined)) {
    throw new ConfigError([
      'OAUTH_ISSUER is set: OAUTH_CLIENT_ID and OAUTH_CLIENT_SECRET are required for token introspection.',
    ])
  }
  return {
    config: Object.freeze({
      ...common,
      deprecations: deprecatedSettings(table, environment),
      publicUrl: trimSlash(common.publicUrl),
      embeddedOAuth: issuer === undefined,
      openRegistration: values.OAUTH_OPEN_REGISTRATION ?? !common.production,
      clientDocuments: values.OAUTH_CLIENT_DOCUMENTS,
      registryOpen: values.REGISTRY_OPEN,
      catalogSources: values.CATALOG_SOURCES ?? [],
      routeMinScore: values.ROUTE_MIN_SCORE ?? routeMinScore,
      routeLearning: values.ROUTE_LEARNING,
      sentenceEncoder: values.SENTENCE_ENCODER,
      exampleTimeoutMs: values.PROBE_EXAMPLES ? values.PROBE_EXAMPLES_SECONDS * 1000 : undefined,
      mcp: { taskAfterMs: values.MCP_TASK_AFTER_MS, answerAfterMs: values.MCP_ANSWER_AFTER_MS },
      console: values.CONSOLE,
      auditRetentionDays: values.AUDIT_RETENTION_DAYS,
      operatorReadsTexts: values.OPERATOR_READS_TEXTS ?? !common.production,
      isolation: {
        mode: values.AGENT_ISOLATION,
        uids: values.AGENT_UIDS,
        egress: values.AGENT_EGRESS,
        limits: {
          memoryMb: values.AGENT_MEMORY_MAX_MB,
          files: values.AGENT_FILES_MAX,
          processes: values.AGENT_PROCESSES_MAX,
        },
      },
      registryAllowedHosts: allowedHosts(
        'REGISTRY_ALLOWED_HOSTS',
        values.REGISTRY_ALLOWED_HOSTS ?? localHosts(common),
      ),
    }),
    secrets: Object.freeze({
      storeUrl: databaseUrl(values.STORE_URL),
      redisUrl: values.REDIS_URL,
      oauthClientSecret: values.OAUTH_CLIENT_SECRET,
      masterKey: masterKeySettings(values),
      identity: identitySettings(values),
      embeddings: embeddingsOf(values),
      telemetry: telemetryOptions(values),
    }),
    environment: { ...environment },
  }
}

function embeddingsOf(values: GatewayValues): GatewaySecrets['embeddings'] {
  const { EMBEDDINGS_URL: url, EMBEDDINGS_MODEL: model, EMBEDDINGS_KEY: key } = values
  return url === undefined ? undefined : { url, model, ...(key !== undefined && { key }) }
}

/** Requires all three settings or none of them (spec/did.md#gateway-identity). Errors never contain the seed. */
function identitySettings(values: GatewayValues): GatewayIdentitySettings | undefined {
  const { SERVICE_GATEWAY_DID_SEED, SERVICE_GATEWAY_AUTHOR, SERVICE_GATEWAY_NAME } = values
  const given = { SERVICE_GATEWAY_DID_SEED, SERVICE_GATEWAY_AUTHOR, SERVICE_GATEWAY_NAME }
  const missing = Object.entries(given).flatMap(([name, value]) => (value === undefined ? [name] : []))
  const keys = values.SERVICE_GATEWAY_DID_KEYS
  if (missing.length === 3 && keys === undefined) return undefined
  if (missing.length > 0) {
    throw new ConfigError([
      `The gateway's identity is incomplete: set ${missing.join(' and ')} too, or none of the three.`,
    ])
  }
  const seed = bytesOf(SERVICE_GATEWAY_DID_SEED ?? '', 32)
  const faults = [
    ...(seed === undefined ? ['SERVICE_GATEWAY_DID_SEED must be base64 of exactly 32 bytes.'] : []),
    ...partFaults('SERVICE_GATEWAY_AUTHOR', SERVICE_GATEWAY_AUTHOR ?? ''),
    ...partFaults('SERVICE_GATEWAY_NAME', SERVICE_GATEWAY_NAME ?? ''),
  ]
  if (seed === undefined || faults.length > 0) throw new ConfigError(faults)
  const identity = {
    seed,
    author: SERVICE_GATEWAY_AUTHOR ?? '',
    name: SERVICE_GATEWAY_NAME ?? '',
    cardEs256: values.CARD_ES256,
  }
  return keys === undefined ? identity : withKeys(identity, keys)
}

/** Adds the key history after a rotation. The DID still derives from the first key. */
function withKeys(identity: GatewayIdentitySettings, keys: string): GatewayIdentitySettings {
  const history = readKeyList(keys)
  try {
    if (history === undefined) throw new Error('not a list of keys')
    gatewayIdentity({ ...identity, history })
    return { ...identity, history }
  } catch (error) {
    throw new ConfigError([
      `SERVICE_GATEWAY_DID_KEYS must be the value printed by npx parley did rotate --gateway, and SERVICE_GATEWAY_DID_SEED the seed of a key in it that is not retired: ${error instanceof Error ? error.message : String(error)}`,
    ])
  }
}

/** Decodes the master keys. Errors contain no part of them. */
function masterKeySettings(values: GatewayValues): GatewaySecrets['masterKey'] {
  const { PARLEY_MASTER_KEY, PARLEY_MASTER_KEY_PREVIOUS } = values
  const given = { PARLEY_MASTER_KEY, PARLEY_MASTER_KEY_PREVIOUS }
  const faults = Object.entries(given).flatMap(([name, text]) =>
    text === undefined || bytesOf(text, 32) !== undefined
      ? []
      : [`${name} must be base64 of exactly 32 bytes, for example the output of "openssl rand -base64 32".`],
  )
  if (PARLEY_MASTER_KEY === undefined && PARLEY_MASTER_KEY_PREVIOUS !== undefined)
    faults.push('PARLEY_MASTER_KEY_PREVIOUS is set: set PARLEY_MASTER_KEY to the new key too.')
  if (faults.length > 0) throw new ConfigError(faults)
  const decoded = (text: string | undefined) => (text === undefined ? undefined : bytesOf(text, 32))
  return { current: decoded(PARLEY_MASTER_KEY), previous: decoded(PARLEY_MASTER_KEY_PREVIOUS) }
}

function partFaults(setting: string, text: string): string[] {
  try {
    didPart(text, setting)
    return []
  } catch {
    return [
      `${setting} may contain only letters, digits, "_", "-", ".", "@" and spaces, at most 128 characters.`,
    ]
  }
}
