import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

type Hex = `0x${string}`

interface Output {
  errors?: { severity: string; formattedMessage: string }[]
  contracts: Record<string, Record<string, { evm: { bytecode: { object: string } } }>>
}

const source = readFileSync(new URL('./eip3009-token.sol', import.meta.url), 'utf8')
const cache = fileURLToPath(new URL('../../node_modules/.cache/parley/', import.meta.url))

/**
 * The bytecode of the token in `eip3009-token.sol`. Compiling takes seconds, so the result is cached by source in
 * node_modules.
 */
export function compiledToken(): Hex {
  const require = createRequire(import.meta.url)
  const { version } = require('solc/package.json') as { version: string }
  const key = createHash('sha256').update(`${version} ${source}`).digest('hex').slice(0, 32)
  const file = `${cache}${key}.hex`
  try {
    return readFileSync(file, 'utf8') as Hex
  } catch {
    const bytecode = compile(require('solc') as { compile(input: string): string })
    mkdirSync(cache, { recursive: true })
    // Several test files may compile at the same time, so the rename must be atomic.
    const draft = `${file}.${process.pid}`
    writeFileSync(draft, bytecode)
    renameSync(draft, file)
    return bytecode
  }
}

function compile(solc: { compile(input: string): string }): Hex {
  const input = {
    language: 'Solidity',
    sources: { token: { content: source } },
    settings: {
      optimizer: { enabled: true },
      evmVersion: 'cancun',
      outputSelection: { '*': { '*': ['evm.bytecode.object'] } },
    },
  }
  const { errors = [], contracts } = JSON.parse(solc.compile(JSON.stringify(input))) as Output
  const fault = errors.find(({ severity }) => severity === 'error')
  if (fault !== undefined) throw new Error(fault.formattedMessage)
  return `0x${contracts['token']?.['TestDollar']?.evm.bytecode.object ?? ''}`
}
