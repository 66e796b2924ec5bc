export interface RegistryOptions {
  /** How long a heartbeat is valid. Defaults to 30 s. */
  leaseMs?: number
  /** Number of leases without a heartbeat or probe after which an agent is unreachable. Defaults to 3. */
  leasesMissed?: number
  /** Whether agents admitted by an open registry stay admitted. Defaults to true. */
  open?: boolean
  /**
   * Whether this process supervises agents. If so, those of an earlier run on this machine have stopped. Defaults to true.
   */
  supervises?: boolean
  /** Host name of this machine. By default, any host name matches. */
  host?: string
  /** Slugs of supervised agents, which other agents cannot use. */
  reserved?: ReadonlySet<string>
  /** The clock, in milliseconds since 1970. */
  now?: () => number
}
