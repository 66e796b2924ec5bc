/** Stored with webhooks; it never changes. */
export const dialectName = 'a2a-v0.3'

/** The path below the address of an agent. */
export const basePath = '/a2a/v0.3'
