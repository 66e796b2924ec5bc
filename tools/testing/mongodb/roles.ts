import { createHash, createHmac, pbkdf2Sync, randomBytes, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import net from 'node:net'
import { BSON, type Document } from 'mongodb'

interface User {
  name: string
  /** The database that contains the user. */
  source: string
  password: string
  roles: { role: string; db: string }[]
}

export interface RoleOptions {
  /** The server behind the proxy, as `host:port`. */
  target: { host: string; port: number }
  users: User[]
  /** Whether the roles are checked. If false, each user may do everything, as on servers without roles. */
  enforced?: boolean
  /** Whether commands without a user are accepted. */
  anonymous?: boolean
  /** Returns an error response in place of the command, or `lost` to close the connection. */
  failing?: (command: string) => Document | 'lost' | undefined
}

/** Address of the proxy and its users, which tests may read. */
export interface RoleProxy extends AsyncDisposable {
  host: string
  readonly users: User[]
  /** Refused commands, as `user command database`. */
  readonly refused: string[]
}

const [opMsg, opCompressed] = [2013, 2012]
const headerBytes = 16
const iterations = 4096

/**
 * Adds users and roles to a MongoDB-compatible server without them. It replaces a MongoDB server with access control,
 * of which it implements SCRAM-SHA-256, the commands for users, and the roles `readWrite`, `readWriteAnyDatabase` and
 * `userAdminAnyDatabase`. It refuses more than a real server: each command that is not known to stay in the database of
 * its `$db`.
 */
export async function startRoleProxy(options: RoleOptions): Promise<RoleProxy> {
  const { users } = options
  const refused: string[] = []
  const sockets = new Set<net.Socket>()
  const server = net.createServer((socket) => {
    const session = new Session(socket, options, refused)
    for (const one of [socket, session.upstream]) {
      sockets.add(one)
      one.on('close', () => sockets.delete(one)).on('error', () => undefined)
    }
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('The proxy has no port')
  return {
    host: `127.0.0.1:${address.port}`,
    users,
    refused,
    [Symbol.asyncDispose]: async () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

/** One connection of a client. */
class Session {
  readonly upstream: net.Socket
  readonly #socket: net.Socket
  readonly #options: RoleOptions
  readonly #refused: string[]
  #user: User | undefined
  #scram: Scram | undefined
  #rest = Buffer.alloc(0)

  constructor(socket: net.Socket, options: RoleOptions, refused: string[]) {
    this.#socket = socket
    this.#options = options
    this.#refused = refused
    this.upstream = net.connect(options.target)
    this.upstream.pipe(socket)
    socket.on('close', () => this.upstream.destroy())
    socket.on('data', (data) => this.#read(data))
  }

  #read(data: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, data])
    while (this.#rest.length >= headerBytes && this.#rest.length >= this.#rest.readInt32LE(0)) {
      const message = this.#rest.subarray(0, this.#rest.readInt32LE(0))
      this.#rest = this.#rest.subarray(message.length)
      this.#handle(message)
    }
  }

  #handle(message: Buffer): void {
    const code = message.readInt32LE(12)
    if (code === opCompressed) throw new Error('The proxy does not read compressed messages')
    // An older message, which drivers send only as their first `hello`.
    if (code !== opMsg) return void this.upstream.write(message)
    const command = commandOf(message)
    const name = Object.keys(command)[0] ?? ''
    const failure = this.#options.failing?.(name)
    if (failure === 'lost') return void this.#socket.destroy()
    const answer = failure ?? this.#answer(name, command)
    if (answer === undefined) return void this.upstream.write(message)
    this.#socket.write(reply(message, answer))
  }

  /** Returns the proxy's own answer; undefined if the server answers. */
  #answer(name: string, command: Document): Document | undefined {
    if (open.has(name)) return undefined
    if (name === 'saslStart' || name === 'saslContinue') return this.#authenticate(name, command)
    const db = String(command['$db'])
    if (!this.#mayUse(name, command, db)) {
      this.#refused.push(`${this.#user?.name ?? '-'} ${name} ${db}`)
      const text = `not authorized on ${db} to execute command ${name}`
      return { ok: 0, errmsg: text, code: 13, codeName: 'Unauthorized' }
    }
    return this.#changeUsers(name, command, db)
  }

  #mayUse(name: string, command: Document, db: string): boolean {
    const { enforced = true, anonymous = false } = this.#options
    if (this.#user === undefined) return anonymous
    if (!enforced) return true
    const has = (role: string, on: string) =>
      this.#user?.roles.some((one) => one.role === role && one.db === on) === true
    if (userCommands.has(name)) return has('userAdminAnyDatabase', 'admin')
    if (!inDatabase.has(name) || JSON.stringify(command).includes('"$out"')) return false
    const pipeline = BSON.EJSON.stringify(command['pipeline'] ?? [])
    if (/"\$(out|merge|lookup|graphLookup|unionWith)"/.test(pipeline)) return false
    return has('readWrite', db) || has('readWriteAnyDatabase', 'admin')
  }

  #changeUsers(name: string, command: Document, db: string): Document | undefined {
    if (!userCommands.has(name)) return undefined
    const { users } = this.#options
    const given = String(command[name])
    const at = users.findIndex((user) => user.name === given && user.source === db)
    if (name === 'createUser') {
      if (at !== -1) return { ok: 0, code: 51_003, errmsg: `User "${given}@${db}" already exists` }
      users.push({ name: given, source: db, password: String(command['pwd']), roles: command['roles'] })
      return { ok: 1 }
    }
    if (name === 'usersInfo') {
      const found = users.filter(({ source }) => source === db)
      return { ok: 1, users: found.map((user) => ({ user: user.name, db })) }
    }
    if (at === -1) return { ok: 0, code: 11, errmsg: `User '${given}@${db}' not found` }
    const [user] = name === 'dropUser' ? users.splice(at, 1) : users.slice(at, at + 1)
    if (user !== undefined && name === 'updateUser')
      Object.assign(user, { password: String(command['pwd']), roles: command['roles'] })
    return { ok: 1 }
  }

  #authenticate(name: string, command: Document): Document {
    const payload = Buffer.from((command['payload'] as { buffer: Uint8Array }).buffer).toString()
    const failed = { ok: 0, code: 18, errmsg: 'Authentication failed.', codeName: 'AuthenticationFailed' }
    if (name === 'saslStart') {
      if (command['mechanism'] !== 'SCRAM-SHA-256') return failed
      this.#scram = new Scram(payload)
      const { first } = this.#scram
      return { ok: 1, conversationId: 1, done: false, payload: new BSON.Binary(Buffer.from(first)) }
    }
    const scram = this.#scram
    this.#scram = undefined
    const user = this.#options.users.find(
      (one) => one.name === scram?.name && one.source === String(command['$db']),
    )
    const last = user && scram?.check(payload, user.password)
    if (user === undefined || last === undefined) return failed
    this.#user = user
    return { ok: 1, conversationId: 1, done: true, payload: new BSON.Binary(Buffer.from(last)) }
  }
}

/** Commands that need no user. */
const open = new Set(['hello', 'isMaster', 'ismaster', 'ping', 'buildInfo', 'buildinfo', 'endSessions'])
const userCommands = new Set(['createUser', 'updateUser', 'dropUser', 'usersInfo'])
/** Commands of `readWrite` that concern only the database in `$db`. */
const inDatabase = new Set(
  [
    'find getMore killCursors insert update delete findAndModify aggregate count distinct',
    'create createIndexes drop dropIndexes listCollections listIndexes',
  ].flatMap((line) => line.split(' ')),
)

const hmac = (key: Uint8Array, text: string) => createHmac('sha256', key).update(text).digest()

/** The server's side of SCRAM-SHA-256 (RFC 7677) for one login. */
class Scram {
  readonly name: string
  readonly first: string
  readonly #salt = randomBytes(16)
  readonly #bare: string

  constructor(clientFirst: string) {
    this.#bare = clientFirst.slice(clientFirst.indexOf(',,') + 2)
    const fields = fieldsOf(this.#bare)
    this.name = (fields.get('n') ?? '').replaceAll('=2C', ',').replaceAll('=3D', '=')
    const nonce = `${fields.get('r')}${randomBytes(18).toString('base64')}`
    this.first = `r=${nonce},s=${this.#salt.toString('base64')},i=${iterations}`
  }

  /** Returns the server's signature; undefined if the proof is wrong. */
  check(clientFinal: string, password: string): string | undefined {
    const proof = Buffer.from(fieldsOf(clientFinal).get('p') ?? '', 'base64')
    const withoutProof = clientFinal.slice(0, clientFinal.lastIndexOf(',p='))
    const salted = pbkdf2Sync(password, this.#salt, iterations, 32, 'sha256')
    const clientKey = hmac(salted, 'Client Key')
    const storedKey = createHash('sha256').update(clientKey).digest()
    const message = `${this.#bare},${this.first},${withoutProof}`
    const signature = hmac(storedKey, message)
    const expected = Buffer.from(clientKey.map((byte, i) => byte ^ (signature[i] ?? 0)))
    if (proof.length !== expected.length || !timingSafeEqual(proof, expected)) return undefined
    return `v=${hmac(hmac(salted, 'Server Key'), message).toString('base64')}`
  }
}

function fieldsOf(message: string): Map<string, string> {
  return new Map(message.split(',').map((field) => [field.slice(0, 1), field.slice(2)]))
}

/** Returns the command of a message. Its other sections contain only documents for it. */
function commandOf(message: Buffer): Document {
  for (let at = headerBytes + 4; at < message.length; ) {
    const isBody = message[at] === 0
    const size = message.readInt32LE(at + 1)
    if (isBody) return BSON.deserialize(message.subarray(at + 1, at + 1 + size))
    at += 1 + size
  }
  throw new Error('The message contains no command')
}

function reply(request: Buffer, answer: Document): Buffer {
  const body = BSON.serialize(answer)
  const head = Buffer.alloc(headerBytes + 5)
  head.writeInt32LE(head.length + body.length, 0)
  head.writeInt32LE(request.readInt32LE(4), 8)
  head.writeInt32LE(opMsg, 12)
  return Buffer.concat([head, body])
}
