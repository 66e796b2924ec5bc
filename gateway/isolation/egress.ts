import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { getServers } from 'node:dns'
import { lookup } from 'node:dns/promises'
import { isIPv6 } from 'node:net'
import { text } from 'node:stream/consumers'
import type { Log } from '@parley/kit/process/log'

export interface EgressOptions {
  /** Distinguishes the rules of several gateways on one machine. */
  dataDir: string
  /** Destinations that every agent needs, as `host:port`: the gateway, the OAuth server and the databases. */
  always: readonly string[]
  log: Log
}

/** How often the names of hosts are resolved again. */
const refreshMs = 60_000
const nftLimitMs = 10_000

/** Limits the connections of the agents' users with nftables. Responses to incoming connections are not limited. */
export class Egress implements AsyncDisposable {
  readonly #table: string
  readonly #options: EgressOptions
  /** Destinations by user. */
  readonly #limited = new Map<number, readonly string[]>()
  /** The last known addresses by host, used while a name cannot be resolved. */
  readonly #addresses = new Map<string, string[]>()
  readonly #timer: NodeJS.Timeout
  #turn: Promise<void> = Promise.resolve()

  private constructor(options: EgressOptions) {
    this.#options = options
    this.#table = `parley_${createHash('sha256').update(options.dataDir).digest('hex').slice(0, 12)}`
    this.#timer = setInterval(() => this.#refresh(), refreshMs).unref()
  }

  /** Tries the rules. Resolves with the reason if this machine cannot apply them. */
  static async open(options: EgressOptions): Promise<Egress | { reason: string }> {
    const egress = new Egress(options)
    try {
      await egress.#apply(new Map([[1, ['127.0.0.1:1']]]))
      return egress
    } catch (error) {
      clearInterval(egress.#timer)
      return { reason: error instanceof Error ? error.message : String(error) }
    }
  }

  /** Limits the connections of a user to these destinations. @throws Error if the rules cannot be applied */
  async limit(uid: number, destinations: readonly string[]): Promise<void> {
    this.#limited.set(uid, destinations)
    await this.#applyInTurn()
  }

  #refresh(): void {
    if (this.#limited.size === 0) return
    this.#applyInTurn().catch((error: unknown) =>
      this.#options.log.error({ err: error }, 'egress rules could not be refreshed'),
    )
  }

  #applyInTurn(): Promise<void> {
    const turn = this.#turn.then(() => this.#apply(this.#limited))
    this.#turn = turn.catch(() => undefined)
    return turn
  }

  /** Replaces all rules in one transaction. */
  async #apply(limited: ReadonlyMap<number, readonly string[]>): Promise<void> {
    const table = `inet ${this.#table}`
    const rules: string[] = []
    for (const [uid, own] of limited) {
      for (const destination of new Set([...this.#options.always, ...own]))
        rules.push(...(await this.#rulesFor(uid, destination)))
      for (const server of nameServers())
        rules.push(
          `meta skuid ${uid} ${family(server)} daddr ${server} meta l4proto { tcp, udp } th dport 53 accept`,
        )
      rules.push(`meta skuid ${uid} reject with icmpx type admin-prohibited`)
    }
    await nft(`add table ${table}
delete table ${table}
table ${table} {
  chain output {
    type filter hook output priority 0; policy accept;
    ct state established,related accept
    ${rules.join('\n    ')}
  }
}
`)
  }

  async #rulesFor(uid: number, destination: string): Promise<string[]> {
    const { hostname, port } = new URL(`tcp://${destination}`)
    const host = hostname.replace(/^\[(.*)\]$/, '$1')
    try {
      const found = await lookup(host, { all: true })
      this.#addresses.set(
        host,
        found.map(({ address }) => address),
      )
    } catch (error) {
      this.#options.log.warn({ err: error, host }, 'host of an egress list cannot be resolved')
    }
    return (this.#addresses.get(host) ?? []).map(
      (address) => `meta skuid ${uid} ${family(address)} daddr ${address} tcp dport ${port} accept`,
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    await this.#turn
    await nft(`delete table inet ${this.#table}\n`).catch(() => undefined)
  }
}

const family = (address: string) => (isIPv6(address) ? 'ip6' : 'ip')

/** Name servers with another port are left out, because they are not in /etc/resolv.conf. */
function nameServers(): string[] {
  return getServers().filter((server) => !server.startsWith('['))
}

async function nft(script: string): Promise<void> {
  const child = spawn('nft', ['-f', '-'], { stdio: ['pipe', 'ignore', 'pipe'], timeout: nftLimitMs })
  const failed = new Promise<never>((_, reject) => child.once('error', reject))
  const closed = new Promise<number | null>((resolve) => child.once('close', resolve))
  child.stdin.on('error', () => undefined).end(script)
  const [code, output] = await Promise.race([Promise.all([closed, text(child.stderr)]), failed])
  if (code !== 0) throw new Error(output.trim().split('\n')[0] || `nft ended with ${code}`)
}
