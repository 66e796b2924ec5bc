/** @deprecated Import `@parley/agent`. */
export * from '@parley/agent'
