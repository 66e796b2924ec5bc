import path from 'node:path'
import type { Deprecation } from '@parley/wire/model/deprecation'
import { type AllowedHosts, parseAllowedHosts } from '../net/allowed-hosts.ts'
import type { TelemetryOptions } from '../telemetry/telemetry.ts'
import type { AnswerLimits } from './answer-budget.ts'
import {
  agentSettings,
  ConfigError,
  commonSettings,
  deprecatedSettings,
  readSettings,
  type Values,
} from './settings.ts'
import { telemetryOptions } from './telemetry-settings.ts'

/** Frozen configuration for the gateway and all agents. Secrets are in a separate object that is never logged. */
export interface CommonConfig {
  host: string
  port: number
  /** Public URL without a trailing slash. If undefined, it is derived from host and port once the server listens. */
  publicUrl: string | undefined
  dataDir: string
  /** Folder of the embedded databases. */
  storeDir: string
  oauth: {
    issuer: string | undefined
    introspectionUrl: string | undefined
    tokenUrl: string | undefined
    /** URL template with `{client_id}`. */
    clientMetadataUrl: string | undefined
    clientId: string | undefined
  }
  /** Whether agents and MCP endpoints reject tokens without an audience. */
  requireAudience: boolean
  taskQueueMax: number
  artifactMaxBytes: number
  /** Limits on responses that have not been read yet. */
  answers: AnswerLimits
  /** How long a send that waits for its task may wait. */
  sendWaitMaxMs: number
  /** Whether cards are signed with ES256 too. */
  cardEs256: boolean
  retentionDays: number
  /** Maximum requests per caller, or per address if the caller is unknown; 0 means unlimited. */
  rateLimitPerMinute: number
  /** Addresses and networks of proxies whose X-Forwarded-* headers are trusted. */
  trustedProxies: readonly string[]
  /** Origins allowed by CORS; `*` allows all. */
  corsOrigins: readonly string[]
  logLevel: string
  production: boolean
  /** Deprecated settings that are in use. */
  deprecations?: readonly Deprecation[]
}

/** Settings for payments to an agent with a price. */
export interface PaymentConfig {
  facilitatorUrl: string | undefined
  rpcUrl: string | undefined
  signerKeyFile: string | undefined
  sandbox: boolean
  /** Confirmations that a direct transfer needs. */
  transferConfirmations: number
  /**
   * URL without a trailing slash. Default: the agent's address. Calls through a gateway use the address at the
   * gateway.
   */
  captureBaseUrl?: string | undefined
  /** Timeouts and intervals. They are not settings but are set by programs that embed an agent. */
  timing?: {
    decideTimeoutMs?: number
    settleTimeoutMs?: number
    reconcileIntervalMs?: number
    transferIntervalMs?: number
  }
}

export interface AgentConfig extends CommonConfig {
  /** Names of this agent in a token's audience besides its address and DID, without a trailing slash. */
  audiences: readonly string[]
  gatewayUrl: string | undefined
  payments: PaymentConfig
  /** Non-public hosts from which files with a `uri` may be fetched. */
  fileAllowedHosts: AllowedHosts
  /** Non-public hosts to which webhooks may be sent. */
  webhookAllowedHosts: AllowedHosts
  /** The global webhook; its token is in the secrets. */
  webhookUrl: string | undefined
}

export interface AgentSecrets {
  /** STORE_URL unless the store is embedded; may contain a password. */
  storeUrl: string | undefined
  /** REDIS_URL, which may contain a password. */
  redisUrl: string | undefined
  oauthClientSecret: string | undefined
  gatewayToken: string | undefined
  /** Initial access token for registering an OAuth client. */
  initialToken: string | undefined
  webhookToken: string | undefined
  /** Undefined if nothing is exported. Contains the headers for the collector. */
  telemetry: TelemetryOptions | undefined
}

/** @throws ConfigError */
export function agentConfig(env: NodeJS.ProcessEnv): { config: AgentConfig; secrets: AgentSecrets } {
  const table = { ...commonSettings, ...agentSettings }
  const values = readSettings(table, env)
  const common = commonConfig(values)
  const gatewayUrl = trimSlash(values.GATEWAY_URL)
  return {
    config: Object.freeze({
      ...common,
      deprecations: deprecatedSettings(table, env),
      oauth: gatewayUrl === undefined ? common.oauth : oauthOfGateway(common.oauth, gatewayUrl),
      gatewayUrl,
      payments: {
        facilitatorUrl: trimSlash(values.PAYMENT_FACILITATOR_URL),
        rpcUrl: values.PAYMENT_RPC_URL,
        signerKeyFile: values.PAYMENT_SIGNER_KEY_FILE,
        sandbox: values.PAYMENT_SANDBOX ?? !common.production,
        transferConfirmations: values.PAYMENT_TRANSFER_CONFIRMATIONS,
        captureBaseUrl: trimSlash(values.CAPTURE_BASE_URL),
      },
      audiences: (values.OAUTH_AUDIENCES ?? []).map((name) => name.replace(/\/+$/, '')),
      fileAllowedHosts: allowedHosts('FILE_ALLOWED_HOSTS', values.FILE_ALLOWED_HOSTS),
      webhookAllowedHosts: allowedHosts(
        'WEBHOOK_ALLOWED_HOSTS',
        values.WEBHOOK_ALLOWED_HOSTS ?? localHosts(common),
      ),
      webhookUrl: values.WEBHOOK_URL,
    }),
    secrets: Object.freeze({
      storeUrl: databaseUrl(values.STORE_URL),
      redisUrl: values.REDIS_URL,
      oauthClientSecret: values.OAUTH_CLIENT_SECRET,
      gatewayToken: values.GATEWAY_TOKEN,
      initialToken: values.OAUTH_INITIAL_TOKEN,
      webhookToken: values.WEBHOOK_TOKEN,
      telemetry: telemetryOptions(values),
    }),
  }
}

/** Without OAuth settings, an agent uses the OAuth server of its gateway. */
function oauthOfGateway(oauth: CommonConfig['oauth'], gatewayUrl: string): CommonConfig['oauth'] {
  if (oauth.issuer !== undefined || oauth.introspectionUrl !== undefined) return oauth
  const issuer = `${gatewayUrl}/oauth2`
  return { ...oauth, issuer, clientMetadataUrl: oauth.clientMetadataUrl ?? `${issuer}/clients/{client_id}` }
}

/** Default for WEBHOOK_ALLOWED_HOSTS and REGISTRY_ALLOWED_HOSTS: this machine in development, none in production. */
export function localHosts({ production }: Pick<CommonConfig, 'production'>): string {
  return production ? '' : 'localhost, 127.0.0.0/8, ::1'
}

/** @param list `none` allows no exceptions, not even the defaults @throws ConfigError */
export function allowedHosts(setting: string, list: string | undefined): AllowedHosts {
  try {
    return parseAllowedHosts(list === 'none' ? '' : (list ?? ''))
  } catch (error) {
    throw new ConfigError([`${setting}: ${error instanceof Error ? error.message : String(error)}.`])
  }
}

/** Returns STORE_URL unless the store is embedded. */
export function databaseUrl(storeUrl: string | undefined): string | undefined {
  return storeUrl?.startsWith('sqlite:') === true ? undefined : storeUrl
}

function storeDirOf(storeUrl: string | undefined): string | undefined {
  const embedded = storeUrl?.startsWith('sqlite:') === true
  return embedded ? path.resolve(storeUrl.slice('sqlite:'.length)) : undefined
}

export function commonConfig(values: Values<typeof commonSettings>): CommonConfig {
  const dataDir = path.resolve(values.DATA_DIR)
  const production = values.NODE_ENV === 'production'
  return {
    host: values.HOST,
    port: values.PORT,
    publicUrl: trimSlash(values.PUBLIC_URL),
    dataDir,
    storeDir: storeDirOf(values.STORE_URL) ?? dataDir,
    oauth: {
      issuer: trimSlash(values.OAUTH_ISSUER),
      introspectionUrl: values.OAUTH_INTROSPECTION_URL,
      tokenUrl: values.OAUTH_TOKEN_URL,
      clientMetadataUrl: values.OAUTH_CLIENT_METADATA_URL,
      clientId: values.OAUTH_CLIENT_ID,
    },
    requireAudience: (values.AGENT_TOKEN_AUDIENCE ?? (production ? 'required' : 'optional')) === 'required',
    taskQueueMax: values.TASK_QUEUE_MAX,
    artifactMaxBytes: values.ARTIFACT_MAX_BYTES,
    cardEs256: values.CARD_ES256,
    answers: {
      callerMaxBytes: values.ANSWERS_PER_CALLER_MAX_BYTES,
      processMaxBytes: values.ANSWERS_MAX_BYTES,
    },
    sendWaitMaxMs: values.SEND_WAIT_MAX_SECONDS * 1000,
    retentionDays: values.RETENTION_DAYS,
    rateLimitPerMinute: values.RATE_LIMIT_PER_MINUTE ?? (production ? 600 : 0),
    trustedProxies: values.TRUSTED_PROXIES ?? [],
    corsOrigins: values.CORS_ORIGINS ?? [],
    logLevel: values.LOG_LEVEL,
    production,
  }
}

export function trimSlash(url: string | undefined): string | undefined {
  return url?.replace(/\/+$/, '')
}
