import path from 'node:path'
import type { Deprecation } from '@parley/wire/model/deprecation'
import { type AllowedHosts, parseAllowedHosts } from '../net/allowed-hosts.ts'
import type { AnswerLimits } from './answer-budget.ts'
import {
  agentSettings,
  ConfigError,
  commonSettings,
  deprecatedSettings,
  readSettings,
  type Values,
} from './settings.ts'

/** What every server of the house knows, frozen. Secrets stand in an object of their own, which is never logged. */
export interface CommonConfig {
  host: string
  port: number
  /** Without a slash at the end; undefined = made from host and port once the server listens. */
  publicUrl: string | undefined
  dataDir: string
  /** Folder of the embedded databases. */
  storeDir: string
  oauth: {
    issuer: string | undefined
    introspectionUrl: string | undefined
    tokenUrl: string | undefined
    /** With `{client_id}` in it. */
    clientMetadataUrl: string | undefined
    clientId: string | undefined
  }
  taskQueueMax: number
  artifactMaxBytes: number
  /** Of answers that have not been read yet. */
  answers: AnswerLimits
  retentionDays: number
  /** Requests of one caller, or of one address where no caller is known; 0 = not limited. */
  rateLimitPerMinute: number
  /** Addresses and networks whose X-Forwarded-* headers are believed. */
  trustedProxies: readonly string[]
  /** Origins whose pages may call from a browser; `*` = all. */
  corsOrigins: readonly string[]
  logLevel: string
  production: boolean
  /** Deprecated settings that are set. */
  deprecations?: readonly Deprecation[]
}

/** Who settles the payments of an agent that has a price. */
export interface PaymentConfig {
  facilitatorUrl: string | undefined
  rpcUrl: string | undefined
  signerKeyFile: string | undefined
  sandbox: boolean
  /** Without a slash at the end; undefined = the agent's own address. A call through a gateway has that gateway's. */
  captureBaseUrl?: string | undefined
  /** How long is waited; not settings, but options of those who start an agent by themselves. */
  timing?: { decideTimeoutMs?: number; settleTimeoutMs?: number; reconcileIntervalMs?: number }
}

export interface AgentConfig extends CommonConfig {
  /** Names by which a token's audience may mean this agent, besides its address and DID; no slash at the end. */
  audiences: readonly string[]
  gatewayUrl: string | undefined
  payments: PaymentConfig
  /** Where files named by `uri` may come from although it is not public. */
  fileAllowedHosts: AllowedHosts
  /** Where webhooks may go although it is not public. */
  webhookAllowedHosts: AllowedHosts
  /** The global webhook of the settings; its token stands among the secrets. */
  webhookUrl: string | undefined
}

export interface AgentSecrets {
  /** STORE_URL of a store other than the embedded one; may contain a password. */
  storeUrl: string | undefined
  /** May hold a password. */
  redisUrl: string | undefined
  oauthClientSecret: string | undefined
  gatewayToken: string | undefined
  /** To register an OAuth client with. */
  initialToken: string | undefined
  webhookToken: string | undefined
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
    }),
  }
}

/** Where nothing else is said, the OAuth server is the one that the gateway has. */
function oauthOfGateway(oauth: CommonConfig['oauth'], gatewayUrl: string): CommonConfig['oauth'] {
  if (oauth.issuer !== undefined || oauth.introspectionUrl !== undefined) return oauth
  const issuer = `${gatewayUrl}/oauth2`
  return { ...oauth, issuer, clientMetadataUrl: oauth.clientMetadataUrl ?? `${issuer}/clients/{client_id}` }
}

/** The default of WEBHOOK_ALLOWED_HOSTS and REGISTRY_ALLOWED_HOSTS: this machine while developing, else nothing. */
export function localHosts({ production }: Pick<CommonConfig, 'production'>): string {
  return production ? '' : 'localhost, 127.0.0.0/8, ::1'
}

/** @param list `none` = no exceptions, where the default has some. @throws ConfigError */
export function allowedHosts(setting: string, list: string | undefined): AllowedHosts {
  try {
    return parseAllowedHosts(list === 'none' ? '' : (list ?? ''))
  } catch (error) {
    throw new ConfigError([`${setting}: ${(error as Error).message}.`])
  }
}

/** STORE_URL of a store other than the embedded one. */
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
    taskQueueMax: values.TASK_QUEUE_MAX,
    artifactMaxBytes: values.ARTIFACT_MAX_BYTES,
    answers: {
      callerMaxBytes: values.ANSWERS_PER_CALLER_MAX_BYTES,
      processMaxBytes: values.ANSWERS_MAX_BYTES,
    },
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
