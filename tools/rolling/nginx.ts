import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { root } from '@parley/e2e/harness/parley-process'
import { freePort } from '../testing/port.ts'

/** nginx with `deploy/nginx.conf`, in front of gateways on this machine. */
export class Nginx implements AsyncDisposable {
  readonly url: string
  readonly #file: string
  readonly #configuration: (drained?: number) => string
  readonly #child: ChildProcess

  private constructor(folder: string, port: number, gateways: number[]) {
    this.url = `http://127.0.0.1:${port}`
    this.#file = path.join(folder, 'nginx.conf')
    const deployed = readFileSync(path.join(root, 'deploy', 'nginx.conf'), 'utf8')
      .replaceAll('/tmp/', `${folder}/nginx/`)
      .replace('listen 8080', `listen 127.0.0.1:${port}`)
    this.#configuration = (drained) =>
      gateways.reduce((text, gateway, index) => {
        const server = new RegExp(`server gateway-${index + 1}:7400([^;]*);`)
        return text.replace(server, `server 127.0.0.1:${gateway}$1${index === drained ? ' down' : ''};`)
      }, deployed)
    mkdirSync(path.join(folder, 'nginx'), { mode: 0o777 })
    writeFileSync(this.#file, this.#configuration())
    const args = ['-c', this.#file, '-g', 'daemon off;', '-e', `${folder}/nginx/error.log`]
    this.#child = spawn('nginx', args, { stdio: 'ignore' })
  }

  static async start(folder: string, gateways: number[]): Promise<Nginx> {
    const nginx = new Nginx(folder, await freePort(), gateways)
    await wait(500)
    if (nginx.#child.exitCode !== null) throw new Error('nginx did not start')
    return nginx
  }

  /** Removes a gateway, which then gets no new requests and completes the open ones. Undefined restores all gateways. */
  async drain(gateway: number | undefined): Promise<void> {
    writeFileSync(this.#file, this.#configuration(gateway))
    const { status } = spawnSync('nginx', ['-c', this.#file, '-s', 'reload', '-e', '/dev/null'])
    if (status !== 0) throw new Error('nginx did not accept the new configuration')
    await wait(1000)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null) return
    const exited = once(this.#child, 'exit')
    this.#child.kill('SIGTERM')
    await exited
  }
}
