import { fromPhrase } from './phrases.ts'
import { plainNumbers } from './plain-numbers.ts'

/** Rewrites common ways of writing arithmetic in the notation of the expression language. */

const symbols: [RegExp, string][] = [
  [/[×✕⋅·∙]/g, '*'],
  [/[÷∕]/g, '/'],
  [/[−–—]/g, '-'],
  [/²/g, '^2'],
  [/³/g, '^3'],
  [/π/g, 'pi'],
  [/∞/g, 'Infinity'],
  [/≤/g, '<='],
  [/≥/g, '>='],
  [/≠/g, '!='],
  [/√\s*\(/g, 'sqrt('],
  [/√\s*(\d+(?:\.\d+)?)/g, 'sqrt($1)'],
  [/°\s*([CF])\b/g, 'deg$1'],
  // Farad and coulomb do not convert into each other, so a bare C or F in a conversion is a temperature.
  [/(?<=\d)\s*F (in|to) C$/g, ' degF $1 degC'],
  [/(?<=\d)\s*C (in|to) F$/g, ' degC $1 degF'],
  [/°/g, ' deg'],
  [/[“”„]/g, '"'],
]

const number = String.raw`-?\d+(?:\.\d+)?`
const atom = String.raw`(?:${number}|[A-Za-z_]\w*)`

const words: [RegExp, string][] = [
  // "how many km are 5 miles" names the target unit first.
  [/^how many (.+?) (?:are|is|equals?|do|makes?)(?: there)?(?: in)? (-?\d.*)$/i, '$2 to $1'],
  // "how many cm are there in 12 inches" is a conversion in the opposite order.
  [
    /^how many (.+?) (?:are there |are |is there |is |do you get |go |make (?:up )?)?(?:in|for|to|into) (?:an? |one )?(.+)$/i,
    '$2 to $1',
  ],
  [/\b(?:the )?square root of (?:the )?/gi, 'sqrt of '],
  [/\b(?:the )?cube root of (?:the )?/gi, 'cbrt of '],
  // Must precede the rule for a bare number: `sin of 30 degrees` is not the sine of 30 radians.
  [
    new RegExp(
      String.raw`\b(?:the )?(sine|sin|cosine|cos|tangent|tan)(?: of)? (${number}) ?(deg|degrees?|rad|radians?)\b`,
      'gi',
    ),
    '$1($2 $3)',
  ],
  [
    new RegExp(
      String.raw`\b(?:the )?(determinant|det|inverse|inv|transpose|median|sqrt|cbrt|factorial|logarithm|log|sine|sin|cosine|cos|tangent|tan) of (\[.*\]|${atom})`,
      'gi',
    ),
    '$1($2)',
  ],
  [/\bdeterminant\(/gi, 'det('],
  [/\binverse\(/gi, 'inv('],
  [/\blogarithm\(/gi, 'log('],
  [/\bsine\(/gi, 'sin('],
  [/\bcosine\(/gi, 'cos('],
  [/\btangent\(/gi, 'tan('],
  [/(?<=\d),? and (?=-?[\d.]+\s*$)/gi, ', '],
  [/\b(?:the )?(?:average|mean) of (\[.*\]|[-\d.,\s]*\d)/gi, 'mean($1)'],
  [/\b(?:the )?sum of ([-\d.,\s]*\d)/gi, 'sum($1)'],
  [new RegExp(String.raw`\b(sqrt|cbrt|log|ln|sin|cos|tan) (${number})`, 'gi'), '$1($2)'],
  [/\bplus\b/gi, '+'],
  [/\bminus\b/gi, '-'],
  [/\b(?:multiplied by|times)\b/gi, '*'],
  [/\b(?:divided by|over)\b/gi, '/'],
  [/\bto the (?:power (?:of )?)?(\d+)(?:st|nd|rd|th)?(?: power)?\b/gi, '^ $1'],
  [/\b(?:to the power of|raised to(?: the)?|to the power)\b/gi, '^'],
  [/\bsquared\b/gi, '^2'],
  [/\bcubed\b/gi, '^3'],
  [new RegExp(String.raw`(${number})\s*(?:%|percent|per cent)\s+of\b`, 'gi'), '$1% *'],
  [new RegExp(String.raw`(${number})\s*(?:percent|per cent)\b`, 'gi'), '$1%'],
  [/\bdegrees? (celsius|fahrenheit)\b/gi, '$1'],
  [/\b(Celsius|Fahrenheit)\b/g, '$1'],
  [/\bmiles? per hour\b/gi, 'mph'],
  [/\bkilomet(?:er|re)s? per hour\b/gi, 'km/h'],
  [/\bmet(?:er|re)s? per second\b/gi, 'm/s'],
  [/\b(?:into|as)\b(?= )/gi, 'to'],
]

/** Pairs of units that are used together, as in `5 feet 3 inches`. */
const compounds: [big: string, small: string][] = [
  ['feet|foot|ft', 'inches|inch|in'],
  ['pounds?|lbs?', 'ounces?|oz'],
  ['hours?|hrs?|h', 'minutes?|mins?|min'],
  ['minutes?|mins?|min', 'seconds?|secs?|s'],
  ['days?', 'hours?|hrs?|h'],
]

/** Rewrites a line as an expression. Quoted text is left unchanged. */
export function toNotation(line: string): string {
  if (/["']/.test(line)) return line
  let text = line
  for (const [pattern, by] of symbols) text = text.replace(pattern, by)
  text = fromPhrase(plainNumbers(text))
  for (const [pattern, by] of words) text = text.replace(pattern, by)
  for (const [big, small] of compounds) text = text.replace(compound(big, small), '($1 $2 + $3 $4)')
  return (
    text
      // `(6 ft + 2 in) cm`: the unit after a pair of units is the target of a conversion.
      .replace(/^(\(\d[^()]* \+ \d[^()]*\)) (?=[a-z]+$)/i, '$1 to ')
      .replaceAll(/\b(celsius|fahrenheit)\b/gi, (unit) => unit.toLowerCase())
      .trim()
  )
}

function compound(big: string, small: string): RegExp {
  return new RegExp(
    String.raw`(?<![\w.])(\d+(?:\.\d+)?)\s*(${big})(?:,? and|,)?\s+(\d+(?:\.\d+)?)\s*(${small})\b(?!\s*[\d(])`,
    'gi',
  )
}
