/**
 * What browsers are told with every answer: to take nothing for something else, to run and frame nothing of it, to tell
 * nobody where it was. A table of our own, for @fastify/helmet sets each header anew per request and most of what it
 * sets is about pages; pages here set their own policy over this one.
 * @param publicUrl where it is https, browsers are told to stay with https for a year
 */
export function securityHeaders(publicUrl: string | undefined): Record<string, string> {
  return {
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    'referrer-policy': 'no-referrer',
    ...(publicUrl?.startsWith('https:') === true && {
      'strict-transport-security': 'max-age=31536000',
    }),
  }
}

/** Those that speak of the answer itself: an answer that is handed through comes with its own, or without. */
export const aboutTheAnswer = ['x-content-type-options', 'content-security-policy', 'referrer-policy']
