import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import path from 'node:path'
import type { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import fastifyStatic from '@fastify/static'
import { RecentMap } from '@parley/kit/did/recent-map'
import { sendCacheable } from '@parley/kit/http/send-cacheable'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { assetApi, moduleApi, pageApi } from './descriptions.ts'
import { readableByFrames } from './pdf-frame.ts'

const require = createRequire(import.meta.url)
const consoleDir = path.dirname(require.resolve('@parley/console/package.json'))
const publicDir = path.join(consoleDir, 'public')

/** The files of the packages that the pages import, below `/console/vendor/<package>/`. */
const modules: Readonly<Record<string, readonly string[]>> = {
  preact: ['dist/preact.mjs', 'hooks/dist/hooks.mjs'],
  htm: ['dist/htm.mjs'],
  '@preact/signals': ['dist/signals.mjs'],
  '@preact/signals-core': ['dist/signals-core.mjs'],
  marked: ['lib/marked.esm.js'],
  unpdf: ['dist/pdfjs.mjs'],
}

/** The style sheets, in order of precedence. They are one file for browsers, which have few connections per server. */
const styleSheets = [
  'tokens',
  'base',
  'shell',
  'components',
  'data',
  'forms',
  'overview',
  'task',
  'decisions',
  'fleet',
] as const

/** The modules of the overview, which browsers load together with those of every page. */
const overviewModules = ['overview', 'calls-card', 'first-task', 'call-graph', 'graph-layout']
const overviewPreloads = overviewModules
  .map((name) => `<link rel="modulepreload" href="/console/assets/screens/overview/${name}.js">`)
  .join('')

/** Compressed files are small, and there are about a hundred. */
const compressedMax = 500
const brotli = promisify(brotliCompress)
const gzipped = promisify(gzip)

/**
 * Adds the pages of the console, their files and the libraries that they import. There is no build step: the files are
 * served unchanged, compressed once per version. Every other path below `/console` returns the single page.
 *
 * @param gatewayUrl the public URL of the gateway
 */
export async function addStaticFiles(scope: FastifyInstance, gatewayUrl: string): Promise<void> {
  await scope.register(fastifyStatic, {
    root: publicDir,
    serve: false,
    cacheControl: false,
    index: false,
    dotfiles: 'deny',
  })
  const onSend = compressOnce()
  scope.get<{ Params: { '*': string } }>(
    '/console/assets/*',
    { config: { api: assetApi }, onSend },
    (request, reply) =>
      reply.headers({ 'cache-control': 'no-cache', ...readableByFrames }).sendFile(request.params['*']),
  )
  scope.get('/console/assets/style.css', { config: { api: assetApi }, onSend }, async (request, reply) => {
    const sheets = await Promise.all(
      styleSheets.map((name) => readFile(path.join(publicDir, 'style', `${name}.css`), 'utf8')),
    )
    sendCacheable(request, reply, sheets.join('\n'), { type: 'text/css; charset=utf-8' })
    return reply.header('cache-control', 'no-cache')
  })
  const files = moduleFiles()
  scope.get<{ Params: { '*': string } }>(
    '/console/vendor/*',
    { config: { api: moduleApi }, onSend },
    (request, reply) => {
      const file = files.get(request.params['*'])
      if (file === undefined) return reply.callNotFound()
      return reply
        .headers({ 'cache-control': 'no-cache', ...readableByFrames })
        .sendFile(path.basename(file), path.dirname(file))
    },
  )
  const sendPage = async (request: FastifyRequest, reply: FastifyReply) => {
    const page = await pageAt(request.routeOptions.url)
    const hosts = [new URL(gatewayUrl).host, request.headers.host ?? '']
    const headers = pageHeaders(page, hosts)
    sendCacheable(request, reply.headers(headers), page, {
      type: 'text/html; charset=utf-8',
      header: headers['content-security-policy'],
    })
    return reply.header('cache-control', 'no-cache')
  }
  scope.get('/console', { config: { api: pageApi } }, (_request, reply) => reply.redirect('/console/', 308))
  scope.get('/console/', { config: { api: pageApi }, onSend }, sendPage)
  scope.get('/console/*', { config: { api: pageApi }, onSend }, sendPage)
}

/** Reads the page. At the address of the overview, it also names the modules of that screen. */
async function pageAt(route: string | undefined): Promise<string> {
  const page = await readFile(path.join(publicDir, 'index.html'), 'utf8')
  return route === '/console/' ? page.replace('</head>', `${overviewPreloads}</head>`) : page
}

/** The packages are resolved from the package of the pages, wherever they are installed. */
function moduleFiles(): Map<string, string> {
  const { resolve } = createRequire(path.join(consoleDir, 'package.json'))
  return new Map(
    Object.entries(modules).flatMap(([name, files]) => {
      // The entry of each package is a file in a folder of the package.
      const root = path.dirname(path.dirname(resolve(name)))
      return files.map((file): [string, string] => [`${name}/${file}`, path.join(root, file)])
    }),
  )
}

/**
 * Allows the files of the console and the import map of the page, which browsers accept only in the page itself.
 *
 * @param hosts the public host of the gateway and that of the request. The sign-in accepts pages of these hosts only
 */
function pageHeaders(page: string, hosts: readonly string[]) {
  const [, map = ''] = /<script type="importmap">([\s\S]*?)<\/script>/.exec(page) ?? []
  const hash = createHash('sha256').update(map).digest('base64')
  const policy = [
    "default-src 'none'",
    `script-src ${scriptSources(hosts)} 'sha256-${hash}'`,
    "style-src 'self'",
    "img-src 'self' data: blob:",
    "font-src 'self'",
    "connect-src 'self'",
    "frame-src 'self'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ]
  return {
    'content-security-policy': policy.join('; '),
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'x-frame-options': 'DENY',
  }
}

/** A host that a policy can name. It cannot name an IPv6 address. */
const hostForm = /^[\w.-]+(:\d{1,5})?$/

/** The folders with the scripts of the console, because agents have scripts at the same origin. */
function scriptSources(hosts: readonly string[]): string {
  if (!hosts.every((host) => hostForm.test(host))) return "'self'"
  const folders = ['/console/assets/', '/console/vendor/']
  return [...new Set(hosts)].flatMap((host) => folders.map((folder) => host + folder)).join(' ')
}

const isText = /^(text\/|application\/(json|javascript)|image\/svg\+xml)/

/** Returns a hook that compresses files. The result is kept for as long as the ETag of the file is the same. */
function compressOnce() {
  const compressed = new RecentMap<string, Buffer>(compressedMax)
  return async (request: FastifyRequest, reply: FastifyReply, payload: unknown): Promise<unknown> => {
    const etag = reply.getHeader('etag')
    const type = String(reply.getHeader('content-type'))
    if (reply.statusCode !== 200 || typeof etag !== 'string' || !isText.test(type)) return payload
    void reply.header('vary', 'Accept-Encoding').removeHeader('accept-ranges')
    const encoding = encodingOf(request.headers['accept-encoding'])
    if (encoding === undefined) return payload
    void reply.header('content-encoding', encoding).removeHeader('content-length')
    const key = `${encoding} ${request.url.split('?', 1)[0]} ${etag}`
    const known = compressed.get(key)
    if (known !== undefined) {
      if (isStream(payload)) payload.destroy()
      return known
    }
    const bytes = isStream(payload) ? await buffer(payload) : Buffer.from(String(payload))
    const smaller =
      encoding === 'br'
        ? await brotli(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } })
        : await gzipped(bytes)
    compressed.set(key, smaller)
    return smaller
  }
}

function encodingOf(accepted: string | string[] | undefined): 'br' | 'gzip' | undefined {
  const names = String(accepted ?? '')
    .split(',')
    .map((part) => part.trim())
    .filter((part) => !/;\s*q=0(\.0*)?$/.test(part))
    .map((part) => part.split(';', 1)[0])
  if (names.includes('br')) return 'br'
  return names.includes('gzip') ? 'gzip' : undefined
}

function isStream(payload: unknown): payload is Readable {
  return typeof payload === 'object' && payload !== null && 'pipe' in payload
}
