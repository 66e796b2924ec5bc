import { isIP } from 'node:net'
import type { Deprecation, DeprecationMark } from '@parley/wire/model/deprecation'
import { z } from 'zod'

/**
 * Every setting of the environment that the house reads, with its default and meaning. `.env.example` is held equal to
 * these tables by a test. A setting is read here and nowhere else.
 */
export interface Setting {
  schema: z.ZodType
  /** As it stands in `.env.example`; empty = unset. */
  example: string
  meaning: string
  secret?: true
  /** The supervisor passes it on to its agents. */
  toAgents?: true
  /** While it is set, every answer of the server carries the `Deprecation` header. */
  deprecated?: DeprecationMark
}

const text = z.string().trim()
const optional = text.optional()
const optionalUrl = z.url({ protocol: /^https?$/, error: 'must be an http or https URL' }).optional()
/** Digits alone: a blank would count as 0, and a limit would be off or shut by accident. */
const digits = (error: string) => text.regex(/^\d{1,15}$/, error).transform(Number)
const wholeNumber = (fallback: number) => digits('must be a whole number').default(fallback)
const byteLimitError = 'must be a whole number of bytes, at least 1'
const byteLimit = (fallback: number) =>
  digits(byteLimitError)
    .refine((bytes) => bytes > 0, byteLimitError)
    .default(fallback)
const portError = 'must be a port number'
const yesNo = z.enum(['yes', 'no'], { error: 'must be yes or no' }).transform((value) => value === 'yes')

/** Commas between the items; each is checked by itself. */
const listOf = (isItem: (item: string) => boolean, error: string) =>
  text
    .transform((value) => value.split(',').map((item) => item.trim()))
    .refine((items) => items.every(isItem), error)
    .optional()

/** What gateway and agents both read. */
export const commonSettings = {
  HOST: { schema: text.default('127.0.0.1'), example: '127.0.0.1', meaning: 'address to listen on' },
  PORT: {
    schema: digits(portError)
      .refine((port) => port <= 65_535, portError)
      .default(7400),
    example: '7400',
    meaning: 'port of the gateway; agents take the ports after it or their own',
  },
  PUBLIC_URL: {
    schema: optionalUrl,
    example: '',
    meaning: 'address that others use; stands in cards (default http://HOST:PORT)',
  },
  DATA_DIR: {
    schema: text.default('.parley'),
    example: '.parley',
    meaning: 'keys, embedded database, development credentials',
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
      'sqlite:<folder> (default sqlite: + DATA_DIR), mongodb://host/database, which several gateways and processes of an agent share, or memory: for an agent in tests (a restart loses everything)',
    secret: true,
  },
  REDIS_URL: {
    schema: z.url({ protocol: /^rediss?$/, error: 'must be a redis:// or rediss:// URL' }).optional(),
    example: '',
    meaning: 'Redis for queue, events and limits that several processes share; empty: in this process',
    secret: true,
  },
  OAUTH_ISSUER: {
    schema: optionalUrl,
    example: '',
    meaning: 'OAuth 2.0 server with discovery by RFC 8414 (default: the embedded one)',
  },
  OAUTH_INTROSPECTION_URL: {
    schema: optionalUrl,
    example: '',
    meaning: 'introspection endpoint (RFC 7662), where discovery does not say it',
  },
  OAUTH_TOKEN_URL: {
    schema: optionalUrl,
    example: '',
    meaning:
      'token endpoint, where discovery does not say it or says an address that is not reachable from here',
  },
  OAUTH_CLIENT_ID: { schema: optional, example: '', meaning: 'our own client at that server' },
  OAUTH_CLIENT_SECRET: { schema: optional, example: '', meaning: 'and its secret', secret: true },
  OAUTH_CLIENT_METADATA_URL: {
    schema: optionalUrl.refine(
      (url) => url === undefined || url.includes('{client_id}'),
      'must hold {client_id}',
    ),
    example: '',
    meaning:
      'metadata of a client, with its public_key, for signed requests; {client_id} is filled in (default: as discovery says, or beside the introspection endpoint of Ory Hydra)',
  },
  TASK_QUEUE_MAX: {
    schema: wholeNumber(10_000),
    example: '10000',
    meaning: 'waiting tasks per agent, at most half of them of one caller; more are answered 503',
    toAgents: true,
  },
  ARTIFACT_MAX_BYTES: {
    schema: wholeNumber(32 * 1024 * 1024),
    example: '33554432',
    meaning: 'largest output of a task in bytes',
    toAgents: true,
  },
  ANSWERS_PER_CALLER_MAX_BYTES: {
    schema: byteLimit(64 * 1024 * 1024),
    example: '67108864',
    meaning:
      'bytes of answers under way to one caller, as far as it has not read them; further large answers are refused with 429',
    toAgents: true,
  },
  ANSWERS_MAX_BYTES: {
    schema: byteLimit(256 * 1024 * 1024),
    example: '268435456',
    meaning: 'the same for all callers of a process; further large answers are refused with 503',
    toAgents: true,
  },
  RETENTION_DAYS: {
    schema: wholeNumber(0),
    example: '0',
    meaning: 'days that ended tasks are kept; 0 = for ever',
    toAgents: true,
  },
  RATE_LIMIT_PER_MINUTE: {
    schema: digits('must be a whole number').optional(),
    example: '',
    meaning:
      'requests per minute of one caller, or of one address where no caller is known (default 600 in production, else 0); 0 = off',
    toAgents: true,
  },
  TRUSTED_PROXIES: {
    schema: listOf(
      isAddressOrNetwork,
      'must be IP addresses or networks like 10.0.0.0/8, with commas between',
    ),
    example: '',
    meaning:
      'addresses or networks whose X-Forwarded-* headers are believed, comma list (the supervisor adds the gateway for its agents)',
  },
  CORS_ORIGINS: {
    schema: listOf(isOrigin, 'must be origins like https://app.example, with commas between, or *'),
    example: '',
    meaning:
      'origins whose pages may call from a browser, comma list; * = all; never with cookies (empty = none)',
    toAgents: true,
  },
  LOG_LEVEL: {
    schema: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),
    example: 'info',
    meaning: 'pino level',
    toAgents: true,
  },
  NODE_ENV: {
    schema: text.default('development'),
    example: '',
    meaning: 'production makes the defaults strict',
    toAgents: true,
  },
} as const satisfies Record<string, Setting>

/** What only an agent reads. */
export const agentSettings = {
  OAUTH_AUDIENCES: {
    schema: listOf(
      (item) => /^(https?|did):/.test(item) && URL.canParse(item),
      'must be addresses or DIDs, with commas between',
    ),
    example: '',
    meaning:
      'more names by which a token’s audience may mean this agent, besides its own address and DID, comma list (the supervisor adds the address at the gateway)',
  },
  FILE_ALLOWED_HOSTS: {
    schema: text.default(''),
    example: '',
    meaning:
      'hosts, addresses or CIDR blocks that files may be fetched from (file parts with a uri) although they are not public, divided by commas',
    toAgents: true,
  },
  WEBHOOK_URL: {
    schema: optionalUrl,
    example: '',
    meaning: 'webhook of every task that has none of its own (wins over globalWebhook of defineAgent)',
    toAgents: true,
  },
  WEBHOOK_TOKEN: {
    schema: optional,
    example: '',
    meaning: 'bearer token sent to it',
    secret: true,
    toAgents: true,
  },
  WEBHOOK_ALLOWED_HOSTS: {
    schema: optional,
    example: '',
    meaning:
      'hosts, addresses or CIDR blocks that webhooks may go to although they are not public, divided by commas (default this machine, localhost; none with NODE_ENV=production); none = no exceptions',
    toAgents: true,
  },
  PAYMENT_FACILITATOR_URL: {
    schema: optionalUrl,
    example: '',
    meaning: 'x402 facilitator that verifies and settles the payments of an agent with a price',
    toAgents: true,
  },
  PAYMENT_RPC_URL: {
    schema: optionalUrl,
    example: '',
    meaning:
      'JSON-RPC of the chain: for the built-in facilitator, or, beside PAYMENT_FACILITATOR_URL, to look up settlements that were not answered; prices are checked against it',
    toAgents: true,
  },
  PAYMENT_SIGNER_KEY_FILE: {
    schema: optional,
    example: '',
    meaning: 'file (mode 0600) with the private key that pays the gas of the built-in facilitator',
    toAgents: true,
  },
  PAYMENT_SANDBOX: {
    schema: yesNo.optional(),
    example: '',
    meaning:
      'whether an agent with a price and neither of these takes test money (default yes; no with NODE_ENV=production)',
    toAgents: true,
  },
  CAPTURE_BASE_URL: {
    schema: optionalUrl,
    example: '',
    meaning:
      'where people reach the pages on which sessions are paid, /pay/… below it (default PUBLIC_URL; the supervisor says the agent’s address at the gateway, which stays when its port moves)',
  },
  GATEWAY_URL: {
    schema: optionalUrl,
    example: '',
    meaning:
      'gateway to register at (the supervisor sets it for its agents); its OAuth server is asked where OAUTH_ISSUER is not set',
  },
  GATEWAY_TOKEN: {
    schema: optional,
    example: '',
    meaning: 'bearer token for it (default: one of the OAuth client above)',
    secret: true,
  },
  OAUTH_INITIAL_TOKEN: {
    schema: optional,
    example: '',
    meaning:
      'initial access token (npx parley token --initial); with it an agent without OAuth client registers one for its DID',
    secret: true,
  },
} as const satisfies Record<string, Setting>

/** What only the gateway reads. */
export const gatewaySettings = {
  SERVICE_GATEWAY_DID_SEED: {
    schema: optional,
    example: '',
    meaning:
      'seed of the gateway’s key, base64 of 32 bytes; with the two below its identity (npx parley did new --gateway)',
    secret: true,
  },
  SERVICE_GATEWAY_AUTHOR: { schema: optional, example: '', meaning: 'who runs it, in its DID' },
  SERVICE_GATEWAY_NAME: { schema: optional, example: '', meaning: 'what it is called, in its DID' },
  SERVICE_GATEWAY_DID_KEYS: {
    schema: optional,
    example: '',
    meaning:
      'its public keys so far, once the first was followed by another: its DID stays that of the first (npx parley did rotate --gateway)',
  },
  REGISTRY_OPEN: {
    schema: yesNo.default(false),
    example: '',
    meaning: 'whether external agents get work before an operator admitted them (parley admit); default no',
  },
  REGISTRY_ALLOWED_HOSTS: {
    schema: optional,
    example: '',
    meaning:
      'hosts, addresses or CIDR blocks that agents may register at although they are not public, divided by commas (default this machine, localhost; none with NODE_ENV=production); none = no exceptions',
  },
  ROUTE_MIN_SCORE: {
    schema: text
      .regex(/^(0(\.\d{1,6})?|1(\.0{1,6})?)$/, 'must be a number from 0 to 1')
      .transform(Number)
      .optional(),
    example: '',
    meaning: 'score below which no agent gets a message that names none (default: the measured threshold)',
  },
  ROUTE_LEARNING: {
    schema: yesNo.default(true),
    example: 'yes',
    meaning: 'whether ratings and the ends of tasks teach the gateway which agent suits which words',
  },
  EMBEDDINGS_URL: {
    schema: optionalUrl,
    example: '',
    meaning:
      'OpenAI-compatible endpoint (…/v1/embeddings) that the texts of skills and requests are sent to, so that meaning counts beside words; empty: words alone',
  },
  EMBEDDINGS_MODEL: {
    schema: text.default('text-embedding-3-small'),
    example: 'text-embedding-3-small',
    meaning: 'model asked for there',
  },
  EMBEDDINGS_KEY: { schema: optional, example: '', meaning: 'bearer token for it', secret: true },
  PARLEY_EMBEDDED_OAUTH: {
    schema: yesNo.optional(),
    example: '',
    meaning: 'yes lets the embedded OAuth server start with NODE_ENV=production',
  },
} as const satisfies Record<string, Setting>

/** What only the command line reads. */
export const cliSettings = {
  PARLEY_TOKEN: {
    schema: optional,
    example: '',
    meaning: 'bearer token of the command line (default: one of the development client)',
    secret: true,
  },
} as const satisfies Record<string, Setting>

function isAddressOrNetwork(item: string): boolean {
  const [address = '', prefix, ...more] = item.split('/')
  const family = isIP(address)
  if (family === 0 || more.length > 0 || address.includes('%')) return false
  return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= (family === 4 ? 32 : 128))
}

/** As a browser writes it in `Origin`: no path, no slash at the end, no default port, lower case. */
function isOrigin(item: string): boolean {
  return item === '*' || (/^https?:\/\/[^*]+$/.test(item) && URL.parse(item)?.origin === item)
}

type Table = Record<string, Setting>
export type Values<T extends Table> = { [K in keyof T]: z.output<T[K]['schema']> }

/** @throws ConfigError with one sentence per fault; values of secrets never stand in it. */
export function readSettings<T extends Table>(table: T, env: NodeJS.ProcessEnv): Values<T> {
  const faults: string[] = []
  const values: Record<string, unknown> = {}
  for (const [name, setting] of Object.entries(table)) {
    const given = env[name] === '' ? undefined : env[name]
    const parsed = setting.schema.safeParse(given)
    if (parsed.success) values[name] = parsed.data
    else faults.push(`${name} ${parsed.error.issues[0]?.message ?? 'is not valid'}.`)
  }
  if (faults.length > 0) throw new ConfigError(faults)
  return values as Values<T>
}

/** Deprecated settings that are set. */
export function deprecatedSettings(table: Record<string, Setting>, env: NodeJS.ProcessEnv): Deprecation[] {
  return Object.entries(table).flatMap(([name, { deprecated }]) =>
    deprecated === undefined || (env[name] ?? '') === '' ? [] : [{ name, ...deprecated }],
  )
}

/** The environment does not make sense; `message` has one readable sentence per fault. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  constructor(faults: string[]) {
    super(faults.join('\n'))
  }
}
