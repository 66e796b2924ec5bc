/** A segment of a path pattern: a wildcard, or a parameter, a literal text or both. */
export interface PatternSegment {
  isWildcard: boolean
  /** The name of the parameter at the beginning of the segment. */
  parameter?: string
  /** The regular expression of the parameter, without its parentheses. */
  expression?: string
  literal: string
}

/** Reads a path pattern of Fastify, in which a literal colon is written as two. */
export function segmentsOf(pattern: string): PatternSegment[] {
  return pattern.split('/').map((segment) => {
    if (segment === '*') return { isWildcard: true, literal: '' }
    const [, parameter, expression, rest = ''] = /^(?::(?!:)(\w+)(?:\((.*)\))?)?(.*)$/.exec(segment) ?? []
    return {
      isWildcard: false,
      ...(parameter !== undefined && { parameter }),
      ...(expression !== undefined && { expression }),
      literal: rest.replaceAll('::', ':'),
    }
  })
}

/**
 * Returns the path of OpenAPI for a path pattern of Fastify.
 * @param wildcard the name of the parameter for a wildcard
 */
export function templateOf(pattern: string, wildcard = 'path'): string {
  return segmentsOf(pattern)
    .map(({ isWildcard, parameter, literal }) =>
      isWildcard ? `{${wildcard}}` : (parameter === undefined ? '' : `{${parameter}}`) + literal,
    )
    .join('/')
}

/** Escapes a text for a regular expression. */
export function escaped(literal: string): string {
  return literal.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
}
