/**
 * The floor plan as data; `rooms.test.ts` holds the house to it. A room is a folder or a single file, and the longest
 * name that fits decides. A room sees itself and every floor below its own, never a neighbour on its floor.
 */
export const floors: string[][] = [
  ['shared/jsonrpc/errors.ts'],
  ['shared/protocol', 'shared/net', 'shared/payments/amount.ts', 'shared/process/secret-file.ts'],
  ['shared/jsonrpc', 'shared/process', 'shared/identity', 'shared/payments/price.ts'],
  ['shared/store', 'shared/events', 'shared/scheduler', 'shared/auth'],
  ['shared/handler', 'shared/client'],
  ['shared/payments'],
  ['shared/discovery', 'shared/negotiation', 'shared/tasks'],
  ['shared/webhooks'],
  ['shared/methods'],
  ['shared/http'],
  ['shared/registration', 'shared/open-payments.ts', 'shared/migration'],
  ['shared/open-limits.ts', 'shared/open-line.ts', 'shared/open-store.ts'],
  ['shared/app.ts'],
  ['shared/run-agent.ts'],
  ['shared/agent-process.ts'],
  ['shared/testing'],

  ['gateway/store', 'gateway/config.ts', 'gateway/ranking'],
  ['gateway/registry', 'gateway/identity-provider', 'gateway/supervisor', 'gateway/resolution'],
  ['gateway/joining'],
  ['gateway/routing'],
  ['gateway/http'],
  ['gateway/start'],
  ['gateway/migration', 'gateway/app.ts'],
  ['gateway/main.ts'],
  ['gateway/gateway-process.ts'],

  ['agents'],
  ['cli'],
  ['bench', 'e2e', 'scripts', 'tools', 'docs', 'root'],
]

/** What a part of the house may see of the other parts, whatever the floors say. */
export const parts: Record<string, string[]> = {
  shared: [],
  gateway: ['shared'],
  // The author's API is all that an agent knows of the house.
  agents: ['shared/handler/define-agent.ts'],
  cli: ['shared', 'gateway'],
  bench: ['shared', 'gateway', 'agents', 'cli'],
  e2e: ['shared', 'scripts'],
  scripts: ['shared'],
  // It runs against any checkout of the product, so it imports nothing of one.
  tools: [],
  docs: ['shared'],
  root: [],
}

/** A driver is known to its adapter alone. */
export const drivers: Record<string, RegExp> = {
  'node:sqlite': /sqlite[^/]*\.ts$/,
  mongodb: /mongodb[^/]*\.ts$/,
  bullmq: /\/bullmq\.ts$/,
  ioredis: /\/(bullmq|redis[^/]*)\.ts$/,
  viem: /^shared\/(payments\/(typed-data|wallet|chain[^/]*)|testing\/chain)\.ts$|^tools\/exchanges\/wallet\.ts$/,
  'oidc-provider': /^gateway\/identity-provider\//,
}

/** The environment is read here and handed on as one frozen object. */
export const readsEnvironment = [
  /^shared\/(process\/|run-agent\.ts$|testing\/(bindu|hydra|mongodb-server)\.ts$)/,
  /^gateway\/config\.ts$/,
  /^agents\/[^/]+\/agent\.ts$/,
  /^(cli|scripts|bench|e2e|tools)\//,
]

/** What only tests use. `shared/testing` is a room of its own: authors of agents import it. */
export const forTests = /\.(test|spec|cases)\.ts$|^(gateway|cli|agents)\/.*\btesting\.ts$/

export const sizes = { medianMaxLines: 80, most: 0.95, mostMaxLines: 250, everyMaxLines: 400 }

export const refusedNames = /(^|\/)index\.ts$|(^|[-/])(utils?|helpers?|common|managers?|services?)\.ts$/
