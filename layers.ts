/**
 * The layers inside each package. A folder imports only from layers listed before its own, never from its own layer.
 * Files in the root of a package are its composition root and may import every folder. The project references
 * (`tsc -b`) enforce the direction of imports between packages.
 */
export const layers: Record<string, string[][]> = {
  'shared/wire': [['errors.ts'], ['jsonrpc'], ['model'], ['codecs']],
  'shared/kit': [['net', 'database', 'telemetry'], ['process'], ['did'], ['auth'], ['http']],
  'shared/engine': [['store', 'queue', 'events'], ['payments', 'migration'], ['tasks'], ['webhooks']],
  'shared/engine/payments': [['x402'], ['facilitators'], ['ledger'], ['capture']],
  'shared/negotiation': [['words'], ['score'], ['index']],
  'shared/client': [],
  'shared/encoder': [],
  'shared/agent': [
    ['author', 'server/registration'],
    ['server/runner', 'server/delegation'],
    ['server/methods'],
    ['server/http'],
    ['server'],
  ],
  relay: [['client', 'store'], ['handler'], ['mcp'], ['host', 'manifest']],
  cli: [['terminal'], ['webhooks', 'scaffold'], ['server'], ['mcp'], ['commands']],
  gateway: [
    ['store', 'did', 'keys', 'config.ts', 'addresses.ts'],
    ['registry', 'oauth'],
    ['health', 'registration', 'records'],
    ['isolation'],
    ['routing', 'supervisor'],
    ['http', 'calls'],
    ['mcp', 'openai', 'catalog', 'operator'],
    ['console'],
  ],
  'gateway/routing': [
    ['store', 'forwarding'],
    ['learning'],
    ['placement'],
    ['negotiation'],
    ['rpc', 'probes'],
  ],
}

/** Each driver may be imported only in the folder of its adapter. */
export const drivers: Record<string, RegExp> = {
  'node:sqlite': /\/sqlite\/[^/]+$|^tools\/bench\/support\/sqlite-fill\.ts$/,
  mongodb: /\/mongodb\/[^/]+$/,
  bullmq: /\/bullmq\.ts$/,
  ioredis: /\/(bullmq|redis[^/]*|redis\/[^/]+)\.ts$/,
  viem: /^(shared\/engine\/payments\/(facilitators\/(typed-data|chain[^/]*)|x402\/wallet)|tools\/(testing\/chain|exchanges\/wallet))\.ts$/,
  'oidc-provider': /^gateway\/oauth\//,
  'onnxruntime-node': /^shared\/encoder\//,
  '@opentelemetry/api': /^(shared\/kit\/telemetry\/otlp|tools\/testing)\//,
  '@opentelemetry/sdk-trace': /^shared\/kit\/telemetry\/otlp\//,
  '@opentelemetry/exporter-trace-otlp-proto': /^shared\/kit\/telemetry\/otlp\//,
}

/** Files that may read the environment; they pass it on as one frozen object. */
export const readsEnvironment = [
  /^shared\/(kit\/process\/|agent\/server\/run-agent\.ts$)/,
  /^relay\/run-relay\.ts$/,
  /^gateway\/config\.ts$/,
  /^agents\/[^/]+\/agent\.ts$/,
  /^(cli|tools|e2e)\//,
]

export const sizes = { medianMaxLines: 80, most: 0.95, mostMaxLines: 250, everyMaxLines: 400 }

/** The public entries of packages, the only files that may consist of re-exports. */
export const publicEntries = /^cli\/compat\//

export const refusedNames = /(^|\/)index\.ts$|(^|[-/])(utils?|helpers?|common|managers?|services?)\.ts$/
