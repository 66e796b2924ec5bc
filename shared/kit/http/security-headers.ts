/** The policy of responses that are no pages. */
export const contentPolicy = "default-src 'none'; frame-ancestors 'none'"

/**
 * Returns the security headers for every response: no content sniffing, no scripts, no framing, no referrer.
 * @fastify/helmet is not used, because it computes each header per request and mostly sets headers for pages; the
 * pages here override this policy.
 * @param publicUrl the public URL; if it is https, HSTS is enabled for a year
 */
export function securityHeaders(publicUrl: string | undefined): Record<string, string> {
  return {
    'x-content-type-options': 'nosniff',
    'content-security-policy': contentPolicy,
    'referrer-policy': 'no-referrer',
    ...(publicUrl?.startsWith('https:') === true && {
      'strict-transport-security': 'max-age=31536000',
    }),
  }
}

/** Headers that describe the content. They are not added to a proxied response. */
export const contentHeaders = ['x-content-type-options', 'content-security-policy', 'referrer-policy']
