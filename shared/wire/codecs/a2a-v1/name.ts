/** Stored with webhooks; it never changes. */
export const dialectName = 'a2a-v1'

/** The path below the address of an agent. */
export const basePath = '/a2a/v1'

/** The media type of bodies without a JSON-RPC envelope. */
export const mediaType = 'application/a2a+json'
