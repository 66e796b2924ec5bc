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
import {
  ConfigError,
  commonSettings,
  deprecatedSettings,
  gatewaySettings,
  readSettings,
  type Values,
} from '@parley/kit/process/settings'
import { routeMinScore } from '@parley/negotiation/score/usual'

/** What the gateway knows, frozen. */
export interface GatewayConfig extends CommonConfig {
  /** The OAuth server of its own; absent where OAUTH_ISSUER names another. */
  embeddedOAuth: boolean
  /** Registered agents get work before an operator admitted them. */
  registryOpen: boolean
  /** Exceptions to the private-address guard for agents that register. */
  registryAllowedHosts: AllowedHosts
  /** 0..1: below it no agent gets a message that names none. */
  routeMinScore: number
  /** Whether outcomes teach the routing. */
  routeLearning: boolean
}

export interface GatewaySecrets {
  /** STORE_URL where it is a MongoDB database; may hold a password. */
  storeUrl: string | undefined
  /** May hold a password. */
  redisUrl: string | undefined
  oauthClientSecret: string | undefined
  /** Undefined: the gateway has no identity. */
  identity: GatewayIdentitySettings | undefined
  /** Undefined: words alone. */
  embeddings: { url: string; model: string; key?: string } | undefined
}

export interface Settings {
  config: GatewayConfig
  secrets: GatewaySecrets
  /** The whole environment, for the supervisor to take the agents' own settings from. */
  environment: NodeJS.ProcessEnv
}

const table = { ...commonSettings, ...gatewaySettings }
type GatewayValues = Values<typeof table>

/** @throws ConfigError with one sentence per fault */
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
      'OAUTH_ISSUER is set: OAUTH_CLIENT_ID and OAUTH_CLIENT_SECRET are needed to ask it about tokens.',
    ])
  }
  return {
    config: Object.freeze({
      ...common,
      deprecations: deprecatedSettings(table, environment),
      publicUrl: trimSlash(common.publicUrl),
      embeddedOAuth: issuer === undefined,
      registryOpen: values.REGISTRY_OPEN,
      routeMinScore: values.ROUTE_MIN_SCORE ?? routeMinScore,
      routeLearning: values.ROUTE_LEARNING,
      registryAllowedHosts: allowedHosts(
        'REGISTRY_ALLOWED_HOSTS',
        values.REGISTRY_ALLOWED_HOSTS ?? localHosts(common),
      ),
    }),
    secrets: Object.freeze({
      storeUrl: databaseUrl(values.STORE_URL),
      redisUrl: values.REDIS_URL,
      oauthClientSecret: values.OAUTH_CLIENT_SECRET,
      identity: identitySettings(values),
      embeddings: embeddingsOf(values),
    }),
    environment: { ...environment },
  }
}

function embeddingsOf(values: GatewayValues): GatewaySecrets['embeddings'] {
  const { EMBEDDINGS_URL: url, EMBEDDINGS_MODEL: model, EMBEDDINGS_KEY: key } = values
  return url === undefined ? undefined : { url, model, ...(key !== undefined && { key }) }
}

/** All three or none (spec/did.md#gateway-identity). No error contains the seed. */
function identitySettings(values: GatewayValues): GatewayIdentitySettings | undefined {
  const { SERVICE_GATEWAY_DID_SEED, SERVICE_GATEWAY_AUTHOR, SERVICE_GATEWAY_NAME } = values
  const given = { SERVICE_GATEWAY_DID_SEED, SERVICE_GATEWAY_AUTHOR, SERVICE_GATEWAY_NAME }
  const missing = Object.entries(given).flatMap(([name, value]) => (value === undefined ? [name] : []))
  const keys = values.SERVICE_GATEWAY_DID_KEYS
  if (missing.length === 3 && keys === undefined) return undefined
  if (missing.length > 0) {
    throw new ConfigError([
      `The gateway's identity is incomplete: ${missing.join(' and ')} must be set too, or none of the three.`,
    ])
  }
  const seed = seedOf(SERVICE_GATEWAY_DID_SEED ?? '')
  const faults = [
    ...(seed === undefined ? ['SERVICE_GATEWAY_DID_SEED must be base64 of exactly 32 bytes.'] : []),
    ...partFaults('SERVICE_GATEWAY_AUTHOR', SERVICE_GATEWAY_AUTHOR ?? ''),
    ...partFaults('SERVICE_GATEWAY_NAME', SERVICE_GATEWAY_NAME ?? ''),
  ]
  if (seed === undefined || faults.length > 0) throw new ConfigError(faults)
  const identity = { seed, author: SERVICE_GATEWAY_AUTHOR ?? '', name: SERVICE_GATEWAY_NAME ?? '' }
  return keys === undefined ? identity : withKeys(identity, keys)
}

/** Once its key was rotated: the DID stays that of the first key. */
function withKeys(identity: GatewayIdentitySettings, keys: string): GatewayIdentitySettings {
  const history = readKeyList(keys)
  try {
    if (history === undefined) throw new Error('It is no list of keys.')
    gatewayIdentity({ ...identity, history })
    return { ...identity, history }
  } catch (error) {
    throw new ConfigError([
      `SERVICE_GATEWAY_DID_KEYS must be as npx parley did rotate --gateway printed it, with the seed of a key in it that is not retired: ${(error as Error).message}`,
    ])
  }
}

/** Base64 or base64url; anything that is not wholly one of them is none. */
function seedOf(text: string): Uint8Array | undefined {
  const urlSafe = text.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
  const seed = Buffer.from(urlSafe, 'base64url')
  return seed.byteLength === 32 && seed.toString('base64url') === urlSafe ? seed : undefined
}

function partFaults(setting: string, text: string): string[] {
  try {
    didPart(text, setting)
    return []
  } catch {
    return [`${setting} may hold letters, digits, "_", "-", ".", "@" and spaces only, at most 128.`]
  }
}
