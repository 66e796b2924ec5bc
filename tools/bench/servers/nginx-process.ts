import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { cpuMicrosOf, rssOf } from '../support/machine.ts'

/** One nginx process that forwards everything. */
export class NginxProcess implements AsyncDisposable {
  readonly address: string
  readonly #child: ChildProcess
  readonly #folder: string

  private constructor(child: ChildProcess, port: number, folder: string) {
    this.#child = child
    this.address = `http://127.0.0.1:${port}`
    this.#folder = folder
  }

  static async start(upstream: string, core: number): Promise<NginxProcess> {
    const folder = await mkdtemp(path.join(tmpdir(), 'parley-bench-nginx-'))
    const port = await freePort()
    const { host } = new URL(upstream)
    await writeFile(path.join(folder, 'nginx.conf'), configuration(folder, port, host))
    const args = ['-c', path.join(folder, 'nginx.conf'), '-p', folder]
    const child = spawn('taskset', ['-c', String(core), 'nginx', ...args], { stdio: 'ignore' })
    const server = new NginxProcess(child, port, folder)
    for (let tries = 0; tries < 100; tries += 1) {
      const there = await fetch(server.address, { method: 'POST', body: '{}' }).catch(() => undefined)
      if (there?.ok === true) return server
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    await server[Symbol.asyncDispose]()
    throw new Error('nginx did not start in time')
  }

  get cpuMicros(): number {
    return cpuMicrosOf(this.#child.pid as number)
  }

  get rssBytes(): number {
    return rssOf(this.#child.pid as number)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL')
    await rm(this.#folder, { recursive: true, force: true })
  }
}

function configuration(folder: string, port: number, upstream: string): string {
  return `
daemon off; master_process off; pid ${folder}/pid; error_log ${folder}/error.log;
events { worker_connections 1024; }
http {
  access_log off; client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
  keepalive_requests 10000000;
  upstream agent { server ${upstream}; keepalive 64; keepalive_requests 10000000; }
  server {
    listen 127.0.0.1:${port};
    location / { proxy_pass http://agent/; proxy_http_version 1.1; proxy_set_header Connection ""; }
    location /agents/upstream/ { proxy_pass http://agent/; proxy_http_version 1.1; proxy_set_header Connection ""; }
  }
}
`
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}
