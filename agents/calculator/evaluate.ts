import { createContext, Script } from 'node:vm'
import type { MathNode } from 'mathjs'
import { inspectTree } from './inspect-tree.ts'
import { lockedDown } from './mathjs.ts'
import type { Calculation, Fault, NotCalculated, Outcome, Step } from './outcome.ts'
import { jsonOf, shown } from './show.ts'
import { sourceStatements } from './source-statements.ts'

/** Number of digits for a result that exceeds the precision of a 64-bit number. */
const exactDigits = 64
const defaultDigits = 14

type Language = ReturnType<typeof lockedDown>
const languages = new Map<number | undefined, Language>()

/** Calculates within `timeoutMs`. Returns an outcome for invalid input instead of throwing an error. */
export function evaluate(calculation: Calculation, timeoutMs: number): Outcome {
  // Creating the language does not count against the time limit.
  languageOf(firstDigits(calculation))
  // The watchdog of the virtual machine terminates a calculation that blocks the process.
  const context = createContext({ run: () => calculate(calculation) })
  try {
    return new Script('run()').runInContext(context, { timeout: timeoutMs }) as Outcome
  } catch (error) {
    return outcomeOf(error)
  }
}

function calculate(calculation: Calculation): Outcome {
  const digits = calculation.precision ?? defaultDigits
  const first = run(calculation, firstDigits(calculation), digits)
  return first.inexact
    ? run(calculation, exactDigits, calculation.precision ?? exactDigits).outcome
    : first.outcome
}

/** The digits for the first attempt; undefined means 64-bit numbers, if they are precise enough. */
function firstDigits({ precision = defaultDigits }: Calculation): number | undefined {
  return precision > 15 ? precision : undefined
}

function run(calculation: Calculation, bigDigits: number | undefined, digits: number) {
  const language = languageOf(bigDigits)
  const scope = new Map<string, unknown>()
  if (calculation.ans !== undefined && /\bans\b/.test(calculation.expression))
    scope.set('ans', language.parse(calculation.ans).evaluate(scope))
  const steps: Step[] = []
  let value: unknown
  const nodes = statements(language.parse(calculation.expression))
  const written = sourceStatements(calculation.expression)
  for (const [at, node] of nodes.entries()) {
    inspectTree(node)
    value = node.evaluate(scope)
    const expression = written.length === nodes.length ? (written[at] ?? '') : node.toString()
    steps.push({ expression, formatted: shown(language, value, digits) })
  }
  const last = steps.at(-1)
  if (!last) throw new SyntaxError('There is nothing to calculate')
  const type = language.typeOf(value)
  const outcome: Outcome = { ok: true, ...last, type, steps, ...jsonOf(language, value, digits) }
  return { outcome, inexact: bigDigits === undefined && isInexact(value) }
}

/** Whether a number may be inexact: integers lose precision beyond 2^53, and numbers become infinite beyond 1e308. */
function isInexact(value: unknown): boolean {
  return typeof value === 'number' && (Math.abs(value) > Number.MAX_SAFE_INTEGER || Number.isNaN(value))
}

function languageOf(digits: number | undefined): Language {
  const known = languages.get(digits)
  if (known) return known
  // Keep only one high-precision instance: each takes several megabytes.
  for (const other of languages.keys()) if (other !== undefined) languages.delete(other)
  const language = lockedDown(digits)
  languages.set(digits, language)
  return language
}

function statements(node: MathNode): MathNode[] {
  const { blocks } = node as unknown as { blocks?: { node: MathNode }[] }
  return blocks ? blocks.map((block) => block.node) : [node]
}

function outcomeOf(error: unknown): NotCalculated {
  const detail = error instanceof Error || isErrorLike(error) ? error.message : String(error)
  const name = /^Undefined (?:symbol|function) (\S+)/.exec(detail)?.[1]
  const char = /\(char (\d+)\)/.exec(detail)?.[1]
  return {
    ok: false,
    fault: faultOf(error, detail),
    detail: detail.replace(/\s*\(char \d+\)/, '').slice(0, 300),
    ...(char && { char: Number(char) }),
    ...(name && detail.startsWith('Undefined symbol') && { missing: name }),
  }
}

function isErrorLike(error: unknown): error is { message: string } {
  return (
    typeof error === 'object' &&
    error !== null &&
    typeof (error as { message?: unknown }).message === 'string'
  )
}

function faultOf(error: unknown, detail: string): Fault {
  const { code, fault } = error as { code?: unknown; fault?: Fault }
  if (fault) return fault
  if (code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return 'time'
  if (/is not available here/.test(detail)) return 'refused'
  if (/^Undefined (symbol|function)/.test(detail)) return 'unknown'
  if (/Invalid array length|Invalid string length|BigInt (?:too big|size)|Maximum call stack/i.test(detail))
    return 'size'
  return error instanceof SyntaxError || (error as { name?: unknown }).name === 'SyntaxError'
    ? 'syntax'
    : 'mismatch'
}
