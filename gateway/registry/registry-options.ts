export interface RegistryOptions {
  /** Validity of a heartbeat. Default 30 s. */
  leaseMs?: number
  /** Number of leases without a heartbeat or probe until an agent is unreachable. Default 3. */
  leasesMissed?: number
  /** Whether agents admitted by an open registry stay admitted. Default true. */
  open?: boolean
  /**
   * Whether this process supervises agents, so that those of an earlier run on this machine are stopped. Default true.
   */
  supervises?: boolean
  /** Host name of this machine. Default: any. */
  host?: string
  /** Slugs of supervised agents, not available to other agents. */
  reserved?: ReadonlySet<string>
  /** The clock, in milliseconds since 1970. */
  now?: () => number
}
