import { z } from 'zod'
import type { Operation } from '../../model/operation.ts'
import { extensionsHeader, versionHeader } from '../a2a-headers.ts'
import { dialectName as nameOfV1 } from '../a2a-v1/name.ts'
import { dialectName as nameOfV03 } from '../a2a-v03/name.ts'
import type { Codec } from '../codec.ts'
import * as a2aV1 from './a2a-v1.ts'
import * as a2aV03 from './a2a-v03.ts'
import * as parley from './parley.ts'

/** The schemas of the answers of a dialect. */
export interface DialectAnswers {
  /** Undefined for streams and for operations that the dialect lacks. */
  results: Readonly<Partial<Record<Operation, z.ZodType | undefined>>>
  /** The form of errors on paths without a JSON-RPC envelope. */
  restError?: z.ZodType
}

const others: ReadonlyMap<Codec['name'], DialectAnswers> = new Map<string, DialectAnswers>([
  [nameOfV1, a2aV1],
  [nameOfV03, a2aV03],
])

export const answersOf = ({ name }: Pick<Codec, 'name'>): DialectAnswers => others.get(name) ?? parley

/** The headers of calls. */
export const callHeaders = z.object({
  [versionHeader.toLowerCase()]: z.string().optional().describe('The version of A2A that the client speaks'),
  [extensionsHeader.toLowerCase()]: z
    .string()
    .optional()
    .describe('The extensions of A2A that the client activates'),
  'x-payment': z.string().optional().describe('A payment of x402 version 1, in base64'),
  'payment-signature': z.string().optional().describe('A payment of x402 version 2, in base64'),
})
