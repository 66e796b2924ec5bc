import { z } from 'zod'

/**
 * The protocol by which the embedded OAuth server keeps the introspection responses of other servers coherent
 * (docs/decisions/0023-coherent-introspection.md). A holder caches responses; the grantor is the OAuth server.
 */

/** Header of an introspection request: the sender can hold a lease, so the response carries `LeaseState`. */
export const leaseHeader = 'parley-introspection-lease'

/** The lease route, relative to the introspection endpoint. */
export const leasePath = 'introspection-leases'

/** The state of the grantor for which an introspection response is valid. */
export const leaseStateSchema = z.object({
  /** Changes whenever the grantor loses its state. Sequence numbers of two instances are not comparable. */
  instance: z.string().min(1).max(64),
  /** The response reflects all invalidations up to this number. */
  seq: z.int().nonnegative(),
  /** Everything on which the response depends. */
  tags: z.array(z.string().max(1024)).min(1).max(64),
  /** The grantor's time, in milliseconds since 1970. */
  now: z.number(),
})
export type LeaseState = z.infer<typeof leaseStateSchema>

/** A poll. The grantor holds it until there is an invalidation or some time has passed. */
export const leasePollSchema = z.object({
  /** Identifies one cache: a new random id for each start of a process. */
  holder: z.string().min(1).max(64),
  /** Increases with each poll of the holder. The grantor ignores polls that are overtaken by a later one. */
  poll: z.int().nonnegative(),
  /**
   * The instance and number of the last answer, whose invalidations the holder has applied. Absent if the holder's
   * cache is empty.
   */
  applied: z.object({ instance: z.string().max(64), seq: z.int().nonnegative() }).optional(),
  /** The holder has emptied its cache and does not poll again. */
  leave: z.literal(true).optional(),
})
export type LeasePoll = z.infer<typeof leasePollSchema>

export const leaseGrantSchema = z.object({
  instance: z.string().min(1).max(64),
  seq: z.int().nonnegative(),
  /** Tags of the responses to remove from the cache, or `all`. */
  drop: z.union([z.literal('all'), z.array(z.string())]),
  /** Duration of the lease in milliseconds, counted from the time at which the poll was sent. 0: no lease. */
  lease_ms: z.number().nonnegative(),
})
export type LeaseGrant = z.infer<typeof leaseGrantSchema>

/** The longest lease that a holder accepts, in milliseconds. */
export const leaseMaxMs = 1900
