import type { Deprecation, DeprecationMark } from '@parley/wire/model/deprecation'
import { z } from 'zod'
import { addressBlock } from '../net/address-block.ts'
import { catalogSettings } from './catalog-settings.ts'
import { isolationSettings } from './isolation-settings.ts'
import { keySettings } from './key-settings.ts'
import { mcpSettings } from './mcp-settings.ts'
import { operatorSettings } from './operator-settings.ts'
import { paymentSettings } from './payment-settings.ts'
import { telemetrySettings } from './telemetry-settings.ts'

/**
 * A setting read from the environment, with its default and meaning. `.env.example` is generated from these tables,
 * and a test keeps it up to date. The environment is not read anywhere else.
 */
export interface Setting {
  schema: z.ZodType
  /** The value in `.env.example`; empty means unset. */
  example: string
  meaning: string
  secret?: true
  /** Whether the supervisor passes the setting to its agents. */
  toAgents?: true
  /** While the setting is used, every response of the server has the `Deprecation` header. */
  deprecated?: DeprecationMark
}

const text = z.string().trim()
const optional = text.optional()
const optionalUrl = z.url({ protocol: /^https?$/, error: 'must be an http or https URL' }).optional()
/** Accepts only digits, because white space would otherwise count as 0 and accidentally disable a limit. */
const digits = (error: string) => text.regex(/^\d{1,15}$/, error).transform(Number)
const wholeNumber = (fallback: number) => digits('must be a whole number').default(fallback)
const byteLimitError = 'must be a whole number of bytes, at least 1'
const byteLimit = (fallback: number) =>
  digits(byteLimitError)
    .refine((bytes) => bytes > 0, byteLimitError)
    .default(fallback)
const probeSecondsError = 'must be a whole number from 1 to 600'
const portError = 'must be a port number'
const yesNo = z.enum(['yes', 'no'], { error: 'must be yes or no' }).transform((value) => value === 'yes')

/** A comma-separated list. */
const listOf = (isItem: (item: string) => boolean, error: string) =>
  text
    .transform((value) => value.split(',').map((item) => item.trim()))
    .refine((items) => items.every(isItem), error)
    .optional()

/** Settings for the gateway and for agents. */
export const commonSettings = {
  HOST: { schema: text.default('127.0.0.1'), example: '127.0.0.1', meaning: 'address to listen on' },
  PORT: {
    schema: digits(portError)
      .refine((port) => port <= 65_535, portError)
      .default(7400),
    example: '7400',
    meaning: 'port of the gateway; supervised agents use the following ports',
  },
  PUBLIC_URL: {
    schema: optionalUrl,
    example: '',
    meaning: 'public address, published in agent cards (default http://HOST:PORT)',
  },
  DATA_DIR: {
    schema: text.default('.parley'),
    example: '.parley',
    meaning: 'folder of keys, embedded databases and development credentials',
  },
  STORE_URL: {
    schema: text
      .regex(
        /^(memory:$|sqlite:|mongodb(\+srv)?:\/\/)/,
        'must begin with sqlite: or mongodb://, or be memory:',
      )
      .optional(),
    example: '',
    meaning:
      'sqlite:<folder> (default sqlite: + DATA_DIR); mongodb://host/database, shared by several gateways and agent processes; or memory: for an agent in tests (data is lost on restart)',
    secret: true,
  },
  REDIS_URL: {
    schema: z.url({ protocol: /^rediss?$/, error: 'must be a redis:// or rediss:// URL' }).optional(),
    example: '',
    meaning:
      'Redis for queues, events and rate limits shared by several processes; empty: in memory of each process',
    secret: true,
  },
  OAUTH_ISSUER: {
    schema: optionalUrl,
    example: '',
    meaning: 'OAuth 2.0 server with RFC 8414 discovery (default: the embedded server)',
  },
  OAUTH_INTROSPECTION_URL: {
    schema: optionalUrl,
    example: '',
    meaning: 'introspection endpoint (RFC 7662), if discovery does not return it',
  },
  OAUTH_TOKEN_URL: {
    schema: optionalUrl,
    example: '',
    meaning: 'token endpoint, if discovery does not return it or returns an unreachable address',
  },
  OAUTH_CLIENT_ID: { schema: optional, example: '', meaning: 'client id of this server at the OAuth server' },
  OAUTH_CLIENT_SECRET: { schema: optional, example: '', meaning: 'secret of that client', secret: true },
  OAUTH_CLIENT_METADATA_URL: {
    schema: optionalUrl.refine(
      (url) => url === undefined || url.includes('{client_id}'),
      'must contain {client_id}',
    ),
    example: '',
    meaning:
      'URL template of client metadata with the public_key for signed requests; must contain {client_id} (default: from discovery, or derived from the introspection endpoint of Ory Hydra)',
  },
  AGENT_TOKEN_AUDIENCE: {
    schema: z.enum(['required', 'optional']).optional(),
    example: '',
    meaning:
      'whether callers that connect to an agent directly, and MCP clients, need a token for this agent or MCP endpoint: required or optional (default: required in production)',
    toAgents: true,
  },
  TASK_QUEUE_MAX: {
    schema: wholeNumber(10_000),
    example: '10000',
    meaning:
      'maximum number of queued tasks per agent; one caller may use half of it; further tasks are rejected with 503',
    toAgents: true,
  },
  ARTIFACT_MAX_BYTES: {
    schema: wholeNumber(32 * 1024 * 1024),
    example: '33554432',
    meaning: 'maximum output of a task in bytes',
    toAgents: true,
  },
  ANSWERS_PER_CALLER_MAX_BYTES: {
    schema: byteLimit(64 * 1024 * 1024),
    example: '67108864',
    meaning: 'maximum bytes of unread responses to one caller; further large responses are rejected with 429',
    toAgents: true,
  },
  ANSWERS_MAX_BYTES: {
    schema: byteLimit(256 * 1024 * 1024),
    example: '268435456',
    meaning:
      'maximum bytes of unread responses to all callers of a process; further large responses are rejected with 503',
    toAgents: true,
  },
  SEND_WAIT_MAX_SECONDS: {
    schema: wholeNumber(90),
    example: '90',
    meaning:
      'how long a blocking A2A send waits for its task; then it returns the running task; 0 = not at all',
    toAgents: true,
  },
  CARD_ES256: {
    schema: yesNo.default(false),
    example: '',
    meaning:
      'sign A2A cards with ES256 too, for clients that do not verify EdDSA, with a second key that is derived from the first and listed in the DID document; default no',
    toAgents: true,
  },
  RETENTION_DAYS: {
    schema: wholeNumber(0),
    example: '0',
    meaning: 'days to keep completed tasks; 0 = keep them indefinitely',
    toAgents: true,
  },
  RATE_LIMIT_PER_MINUTE: {
    schema: digits('must be a whole number').optional(),
    example: '',
    meaning:
      'requests per minute and caller, or per address if the caller is unknown (default 600 in production, else 0); 0 = unlimited',
    toAgents: true,
  },
  TRUSTED_PROXIES: {
    schema: listOf(
      (item) => addressBlock(item) !== undefined,
      'must be a comma-separated list of IP addresses or networks like 10.0.0.0/8',
    ),
    example: '',
    meaning:
      'addresses or networks of proxies whose X-Forwarded-* headers are trusted, comma-separated (the supervisor adds the gateway for its agents)',
  },
  CORS_ORIGINS: {
    schema: listOf(isOrigin, 'must be * or a comma-separated list of origins like https://app.example'),
    example: '',
    meaning: 'origins allowed by CORS, comma-separated; * = all; cookies are never allowed (empty = none)',
    toAgents: true,
  },
  LOG_LEVEL: {
    schema: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),
    example: 'info',
    meaning: 'log level of pino',
    toAgents: true,
  },
  NODE_ENV: {
    schema: text.default('development'),
    example: '',
    meaning: 'production: strict defaults',
    toAgents: true,
  },
  ...telemetrySettings,
} as const satisfies Record<string, Setting>

/** Settings for agents. */
export const agentSettings = {
  OAUTH_AUDIENCES: {
    schema: listOf(
      (item) => /^(https?|did):/.test(item) && URL.canParse(item),
      'must be a comma-separated list of addresses or DIDs',
    ),
    example: '',
    meaning:
      'further names of this agent in a token’s audience, in addition to its address and DID, comma-separated (the supervisor adds the address at the gateway)',
  },
  FILE_ALLOWED_HOSTS: {
    schema: text.default(''),
    example: '',
    meaning:
      'non-public hosts, addresses or CIDR blocks that file parts with a uri may be fetched from, comma-separated',
    toAgents: true,
  },
  WEBHOOK_URL: {
    schema: optionalUrl,
    example: '',
    meaning: 'webhook of every task without a webhook (overrides globalWebhook of defineAgent)',
    toAgents: true,
  },
  WEBHOOK_TOKEN: {
    schema: optional,
    example: '',
    meaning: 'bearer token for WEBHOOK_URL',
    secret: true,
    toAgents: true,
  },
  WEBHOOK_ALLOWED_HOSTS: {
    schema: optional,
    example: '',
    meaning:
      'non-public hosts, addresses or CIDR blocks that webhooks may be sent to, comma-separated (default: localhost; none with NODE_ENV=production); none = no exceptions',
    toAgents: true,
  },
  ...paymentSettings,
  CAPTURE_BASE_URL: {
    schema: optionalUrl,
    example: '',
    meaning:
      'base URL of the payment pages /pay/… (default PUBLIC_URL; the supervisor sets the agent’s address at the gateway, which does not change with the port)',
  },
  GATEWAY_URL: {
    schema: optionalUrl,
    example: '',
    meaning:
      'gateway to register at (the supervisor sets it for its agents); its OAuth server is used if OAUTH_ISSUER is not set',
  },
  GATEWAY_TOKEN: {
    schema: optional,
    example: '',
    meaning: 'bearer token for the gateway (default: a token of OAUTH_CLIENT_ID)',
    secret: true,
  },
  OAUTH_INITIAL_TOKEN: {
    schema: optional,
    example: '',
    meaning:
      'initial access token (npx parley token --initial); an agent without an OAuth client uses it to register one for its DID',
    secret: true,
  },
} as const satisfies Record<string, Setting>

/** Settings for the gateway. */
export const gatewaySettings = {
  ...keySettings,
  ...mcpSettings,
  ...operatorSettings,
  REGISTRY_OPEN: {
    schema: yesNo.default(false),
    example: '',
    meaning: 'whether external agents receive work before an operator admits them (parley admit); default no',
  },
  REGISTRY_ALLOWED_HOSTS: {
    schema: optional,
    example: '',
    meaning:
      'non-public hosts, addresses or CIDR blocks that agents may register with, comma-separated (default: localhost; none with NODE_ENV=production); none = no exceptions',
  },
  ...catalogSettings,
  ROUTE_MIN_SCORE: {
    schema: text
      .regex(/^(0(\.\d{1,6})?|1(\.0{1,6})?)$/, 'must be a number from 0 to 1')
      .transform(Number)
      .optional(),
    example: '',
    meaning: 'minimum score for routing a message that names no agent (default: the measured threshold)',
  },
  ROUTE_LEARNING: {
    schema: yesNo.default(true),
    example: 'yes',
    meaning: 'whether the gateway learns from ratings and task outcomes which agents suit which words',
  },
  SENTENCE_ENCODER: {
    schema: yesNo.default(true),
    example: 'yes',
    meaning:
      'whether agents are ranked by meaning too, with the sentence encoder that Parley includes (a thread of the gateway, about 150 MB); needs the optional package onnxruntime-node and sends nothing over the network; no: ranking by words only',
  },
  PROBE_EXAMPLES: {
    schema: yesNo.default(false),
    example: '',
    meaning:
      'yes: the gateway sends new admitted agents up to 3 examples of their skills, with its own client, and considers the results when it chooses agents; agents execute them like any message; default no',
  },
  PROBE_EXAMPLES_SECONDS: {
    schema: digits(probeSecondsError)
      .refine((seconds) => seconds >= 1 && seconds <= 600, probeSecondsError)
      .default(30),
    example: '30',
    meaning: 'how long the gateway waits for the result of one example, 1 to 600',
  },
  EMBEDDINGS_URL: {
    schema: optionalUrl,
    example: '',
    meaning:
      'OpenAI-compatible endpoint (…/v1/embeddings) for ranking by meaning, instead of the included encoder; it receives the texts of skills and requests',
  },
  EMBEDDINGS_MODEL: {
    schema: text.default('text-embedding-3-small'),
    example: 'text-embedding-3-small',
    meaning: 'embeddings model',
  },
  EMBEDDINGS_KEY: { schema: optional, example: '', meaning: 'bearer token for EMBEDDINGS_URL', secret: true },
  ...isolationSettings,
  OAUTH_CLIENT_DOCUMENTS: {
    schema: yesNo.default(true),
    example: 'yes',
    meaning:
      'whether an application may use the address of its metadata document as its client id at the embedded OAuth server, which then reads the document; each access still needs a person’s approval',
  },
  OAUTH_OPEN_REGISTRATION: {
    schema: yesNo.optional(),
    example: '',
    meaning:
      'whether applications may register at the embedded OAuth server without the initial access token, as many MCP hosts do; each access still needs a person’s approval (default yes; no with NODE_ENV=production)',
  },
  PARLEY_EMBEDDED_OAUTH: {
    schema: yesNo.optional(),
    example: '',
    meaning: 'yes allows the embedded OAuth server with NODE_ENV=production',
  },
} as const satisfies Record<string, Setting>

/** Settings for the command line. */
export const cliSettings = {
  PARLEY_TOKEN: {
    schema: optional,
    example: '',
    meaning: 'bearer token of the command line (default: a token of the development client)',
    secret: true,
  },
} as const satisfies Record<string, Setting>

/** Whether this is an origin as browsers send it: lower case, without a path, a trailing slash or a default port. */
function isOrigin(item: string): boolean {
  return item === '*' || (/^https?:\/\/[^*]+$/.test(item) && URL.parse(item)?.origin === item)
}

type Table = Record<string, Setting>
export type Values<T extends Table> = { [K in keyof T]: z.output<T[K]['schema']> }

/** @throws ConfigError with one sentence per fault, without the values of secrets */
export function readSettings<T extends Table>(table: T, env: NodeJS.ProcessEnv): Values<T> {
  const faults: string[] = []
  const values: Record<string, unknown> = {}
  for (const [name, setting] of Object.entries(table)) {
    const parsed = setting.schema.safeParse(env[name] === '' ? undefined : env[name])
    if (parsed.success) values[name] = parsed.data
    else faults.push(`${name} ${parsed.error.issues[0]?.message ?? 'is not valid'}.`)
  }
  if (faults.length > 0) throw new ConfigError(faults)
  return values as Values<T>
}

/** Returns the deprecated settings that are set. */
export function deprecatedSettings(table: Record<string, Setting>, env: NodeJS.ProcessEnv): Deprecation[] {
  return Object.entries(table).flatMap(([name, { deprecated }]) =>
    deprecated === undefined || (env[name] ?? '') === '' ? [] : [{ name, ...deprecated }],
  )
}

/** The environment is invalid. The message has one sentence per fault. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  constructor(faults: string[]) {
    super(faults.join('\n'))
  }
}
