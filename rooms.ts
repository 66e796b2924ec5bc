/**
 * Layers inside each package: a folder imports from the layers before its own, never from a folder of its own layer.
 * Files in the root of a package are its composition root and see every folder. The direction between packages is held
 * by the project references (`tsc -b`).
 */
export const layers: Record<string, string[][]> = {
  'shared/wire': [['errors.ts'], ['jsonrpc'], ['model'], ['codecs']],
  'shared/kit': [['net', 'database'], ['process'], ['did'], ['auth'], ['http']],
  'shared/engine': [['store', 'queue', 'events'], ['payments', 'migration'], ['tasks'], ['webhooks']],
  'shared/engine/payments': [['x402'], ['facilitators'], ['ledger'], ['capture']],
  'shared/negotiation': [['words'], ['score'], ['index']],
  'shared/client': [],
  'shared/agent': [
    ['author', 'server/registration'],
    ['server/runner'],
    ['server/methods'],
    ['server/http'],
    ['server'],
  ],
  cli: [['terminal'], ['webhooks', 'scaffold'], ['server'], ['commands']],
  gateway: [
    ['store', 'did', 'config.ts', 'addresses.ts'],
    ['registry', 'oauth'],
    ['health', 'registration'],
    ['routing', 'supervisor'],
    ['http'],
  ],
  'gateway/routing': [['store', 'forwarding'], ['learning'], ['placement'], ['negotiation'], ['rpc']],
}

/** A driver is imported in the folder of its adapter only. */
export const drivers: Record<string, RegExp> = {
  'node:sqlite': /\/sqlite\/[^/]+$|^tools\/bench\/support\/sqlite-fill\.ts$/,
  mongodb: /\/mongodb\/[^/]+$/,
  bullmq: /\/bullmq\.ts$/,
  ioredis: /\/(bullmq|redis[^/]*|redis\/[^/]+)\.ts$/,
  viem: /^(shared\/engine\/payments\/(facilitators\/(typed-data|chain[^/]*)|x402\/wallet)|tools\/(testing\/chain|exchanges\/wallet))\.ts$/,
  'oidc-provider': /^gateway\/oauth\//,
}

/** The environment is read here and passed on as one frozen object. */
export const readsEnvironment = [
  /^shared\/(kit\/process\/|agent\/server\/run-agent\.ts$)/,
  /^gateway\/config\.ts$/,
  /^agents\/[^/]+\/agent\.ts$/,
  /^(cli|tools|e2e)\//,
]

export const sizes = { medianMaxLines: 80, most: 0.95, mostMaxLines: 250, everyMaxLines: 400 }

/** Public entries of packages: the only files that may consist of exports from other files. */
export const publicEntries = /^cli\/compat\//

export const refusedNames = /(^|\/)index\.ts$|(^|[-/])(utils?|helpers?|common|managers?|services?)\.ts$/
