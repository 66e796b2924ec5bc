/** @deprecated Import `@parley/agent/testing`. */
export * from '@parley/agent/testing'
