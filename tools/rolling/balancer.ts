import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'

const source = path.join(import.meta.dirname, '..', '..', 'deploy', 'nginx.conf')

/** nginx with the configuration of `deploy/`, before servers of this machine. */
export class Balancer implements AsyncDisposable {
  readonly url: string
  readonly #file: string
  readonly #text: (out?: number) => string
  readonly #child: ChildProcess

  private constructor(folder: string, port: number, gateways: number[]) {
    this.url = `http://127.0.0.1:${port}`
    this.#file = path.join(folder, 'nginx.conf')
    const text = readFileSync(source, 'utf8')
      .replaceAll('/tmp/', `${folder}/nginx/`)
      .replace('listen 8080', `listen 127.0.0.1:${port}`)
    this.#text = (out) =>
      gateways.reduce((all, gateway, number) => {
        const down = number === out ? ' down' : ''
        return all.replace(
          new RegExp(`server gateway-${number + 1}:7400([^;]*);`),
          `server 127.0.0.1:${gateway}$1${down};`,
        )
      }, text)
    mkdirSync(path.join(folder, 'nginx'), { mode: 0o777 })
    writeFileSync(this.#file, this.#text())
    this.#child = spawn('nginx', ['-c', this.#file, '-g', 'daemon off;', '-e', `${folder}/nginx/error.log`], {
      stdio: 'ignore',
    })
  }

  static async start(folder: string, port: number, gateways: number[]): Promise<Balancer> {
    const balancer = new Balancer(folder, port, gateways)
    await wait(500)
    if (balancer.#child.exitCode !== null) throw new Error('nginx did not start')
    return balancer
  }

  /** Sends nothing to that gateway any more, and lets what is under way end. Undefined: all are in again. */
  async without(number: number | undefined): Promise<void> {
    writeFileSync(this.#file, this.#text(number))
    const { status } = spawnSync('nginx', ['-c', this.#file, '-s', 'reload', '-e', '/dev/null'])
    if (status !== 0) throw new Error('nginx did not take the new configuration')
    await wait(1000)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null) return
    const over = once(this.#child, 'exit')
    this.#child.kill('SIGTERM')
    await over
  }
}
