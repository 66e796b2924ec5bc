export interface RegistryOptions {
  /** How long a heartbeat holds. Default 30 s. */
  leaseMs?: number
  /** Leases that pass without a sign before an agent counts as unreachable. Default 3. */
  leasesMissed?: number
  /** Whether agents that were admitted because the registry was open stay so. Default yes. */
  open?: boolean
  /** This process is one that runs agents; those that an earlier one ran on this machine are gone. Default yes. */
  supervises?: boolean
  /** This machine. Default: whichever it was. */
  host?: string
  /** Slugs of the agents that the gateway runs by itself: no stranger gets them. */
  reserved?: ReadonlySet<string>
  /** The clock, in milliseconds since 1970. */
  now?: () => number
}
