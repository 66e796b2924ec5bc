/** @deprecated Import `@parley/client`. */
export * from '@parley/client'
