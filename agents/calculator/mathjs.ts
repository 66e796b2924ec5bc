import { createRequire } from 'node:module'
import type { MathJsInstance } from 'mathjs'
import { currencies } from './currencies.ts'

/**
 * The one place that loads the library, and only ever in the calculating process. The bundled file loads in a quarter
 * of the time and memory of its hundreds of modules.
 */
type Library = { create: typeof import('mathjs').create; all: import('mathjs').FactoryFunctionMap }
const { create, all } = createRequire(import.meta.url)('mathjs/lib/browser/math.js') as Library

/** Functions that parse or change the language itself (the library's own advice, "Security", and their kin). */
export const refusedFunctions: ReadonlySet<string> = new Set([
  'import',
  'config',
  'create',
  'createUnit',
  'deleteUnit',
  'splitUnit',
  'evaluate',
  'parse',
  'parser',
  'compile',
  'chain',
  'typed',
  'help',
  'reviver',
  'replacer',
  'simplify',
  'simplifyCore',
  'simplifyConstant',
  'derivative',
  'rationalize',
  'resolve',
  'symbolicEqual',
  'leafCount',
])

/** The library itself needs these; the look at the expression keeps them out of it. */
const unreplaceable: ReadonlySet<string> = new Set([
  'typed',
  'config',
  'create',
  'reviver',
  'replacer',
  'help',
])

/** Units that people ask for and the library lacks. */
const units: Record<
  string,
  { definition: string; aliases?: string[]; prefixes?: 'none' | 'short' | 'long' }
> = {
  pound: { definition: '1 lb', aliases: ['pounds'] },
  mph: { definition: '1 mi/h' },
  kph: { definition: '1 km/h', aliases: ['kmh', 'kmph'] },
  knot: { definition: '1852 m/h', aliases: ['knots'] },
  cal: { definition: '4.184 J', prefixes: 'short' },
  calorie: { definition: '4.184 J', aliases: ['calories'], prefixes: 'long' },
  lightyear: { definition: '9460730472580800 m', aliases: ['lightyears'] },
  nauticalmile: { definition: '1852 m', aliases: ['nauticalmiles', 'nmi'] },
}

/** A fresh instance of the language without its dangerous parts, and the means to parse and show. */
export function lockedDown(digits?: number) {
  const math = create(all) as MathJsInstance
  if (digits) math.config({ number: 'BigNumber', precision: digits })
  // Taken before the replacements below, which hold for expressions alone.
  const parse = math.parse.bind(math)
  const format = math.format.bind(math)
  const typeOf = math.typeOf.bind(math)
  for (const [name, unit] of Object.entries(units)) math.createUnit({ [name]: unit })
  // Without a definition each is a dimension of its own.
  for (const code of currencies) math.createUnit(code)
  math.import({ ln: math.log.bind(math) }, {})
  const replaceable = [...refusedFunctions].filter((name) => !unreplaceable.has(name))
  math.import(Object.fromEntries(replaceable.map((name) => [name, refusal(name)])), { override: true })
  return { parse, format, typeOf }
}

function refusal(name: string) {
  return () => {
    throw new Error(`\`${name}\` is not available here`)
  }
}
