import { currencies } from './currencies.ts'

/** Rewrites questions about percentages, tips, discounts and splitting as one expression. */

const value = String.raw`-?\d+(?:\.\d+)?(?:e\d+)?(?: (?:${[...currencies].join('|')}))?`
/** A number, a sum of money or a quantity with its unit. */
const amount = String.raw`(${value}(?: [a-z]+)?)`
const money = String.raw`(${value})`
const percent = String.raw`(\d+(?:\.\d+)?) ?(?:%|percent|per cent)`
const people = String.raw`(\d+)(?: (?:people|persons?|friends|guests|of us|ways?|parts?))?`
const surcharge = '(?:tip|gratuity|tax|sales tax|vat|service charge|surcharge|fee|interest)'
const withMore = String.raw`(?:with|plus|including|incl\.?|and(?: add)?|\+) (?:an? )?`
const split = '(?:split|divide|share)'
const among = '(?:by|between|among(?:st)?|into|in|for) ?'

const list = String.raw`(\d+(?:(?:, ?(?:and )?| and )\d+)+)`
const share = '(?:percentage|percent|%)'

const phrases: [pattern: RegExp, expression: (...groups: string[]) => string][] = [
  phrase(
    `${split} (?:an? |the )?(?:bill (?:of )?)?${money}(?:,| equally| evenly)? (?:${among})?${people},? ${withMore}${percent}(?: ${surcharge})?`,
    (total, count, share) => `(${changed(total, '+', share)}) / ${count}`,
  ),
  phrase(
    `${split} (?:an? |the )?(?:bill (?:of )?)?${money},? ${withMore}${percent}(?: ${surcharge})?,? (?:${among})?${people}`,
    (total, share, count) => `(${changed(total, '+', share)}) / ${count}`,
  ),
  phrase(
    `${split} (?:an? |the )?(?:bill (?:of )?)?${money}(?:,| equally| evenly)? (?:${among})?${people}`,
    (total, count) => `${total} / ${count}`,
  ),
  phrase(
    `${money},? ${withMore}${percent}(?: ${surcharge})?,? (?:split|divided|shared) (?:${among})?${people}`,
    (total, share, count) => `(${changed(total, '+', share)}) / ${count}`,
  ),
  phrase(`${money} (?:split|shared) (?:${among})?${people}`, (total, count) => `${total} / ${count}`),
  phrase(
    `${percent} ${surcharge} (?:on|of|for|from) ${money},? (?:split|divided|shared) (?:${among})?${people}`,
    (share, total, count) => `(${changed(total, '+', share)}) / ${count}`,
  ),
  phrase(`${percent} ${surcharge} (?:on|of|for|from) ${money}`, (share, total) => `${share}% * ${total}`),
  phrase(
    `${surcharge} (?:of |at )?${percent} (?:on|of|for|from) ${money}`,
    (share, total) => `${share}% * ${total}`,
  ),
  phrase(
    `${surcharge} (?:on|of|for|from) ${money} (?:at|of|with) ${percent}`,
    (total, share) => `${share}% * ${total}`,
  ),
  phrase(`(?:take )?${percent} off(?: of)? ${money}`, (share, total) => changed(total, '-', share)),
  phrase(`(?:take )?${percent} discount (?:on|of|off|from) ${money}`, (share, total) =>
    changed(total, '-', share),
  ),
  phrase(`(?:price of )?${money} ${withMore}${percent}(?: ${surcharge})?`, (total, share) =>
    changed(total, '+', share),
  ),
  phrase(
    `(?:price of )?${money} (?:with|after|less|minus|-) (?:an? )?${percent} (?:discount|off|reduction|rebate)`,
    (total, share) => changed(total, '-', share),
  ),
  phrase(`(?:add|increase|raise) (?:an? )?${percent}(?: ${surcharge})? to ${money}`, (share, total) =>
    changed(total, '+', share),
  ),
  phrase(`(?:increase|raise|grow) ${money} by ${percent}`, (total, share) => changed(total, '+', share)),
  phrase(`(?:decrease|reduce|lower|cut) ${money} by ${percent}`, (total, share) =>
    changed(total, '-', share),
  ),
  phrase(`(?:subtract|take|deduct) ${percent} from ${money}`, (share, total) => changed(total, '-', share)),
  phrase(`${percent} more than ${money}`, (more, total) => changed(total, '+', more)),
  phrase(`${percent} less than ${money}`, (less, total) => changed(total, '-', less)),
  phrase(`${share} (?:increase|decrease|change|growth) from ${money} to ${money}`, change),
  phrase(
    `from ${money} to ${money},? (?:what is |is )?(?:the |an? )?(?:what )?${share} (?:increase|decrease|change|growth)`,
    change,
  ),
  phrase(`what (?:percent|percentage|%) of ${money} is ${money}`, (whole, part) => ratio(part, whole)),
  phrase(`what (?:percent|percentage|%) is ${money} of ${money}`, ratio),
  phrase(`${money} is what (?:percent|percentage|%) of ${money}`, ratio),
  phrase(`${percent} (?:von|de) ${money}`, (share, total) => `${share}% * ${total}`),
  phrase(`add ${amount} (?:and|to|with) ${amount}`, (one, other) => `${one} + ${other}`),
  phrase(`(?:subtract|take|deduct) ${amount} from ${amount}`, (one, other) => `${other} - ${one}`),
  phrase(`multiply ${amount} (?:by|with|and) ${amount}`, (one, other) => `${one} * ${other}`),
  phrase(`divide ${amount} by ${amount}`, (one, other) => `${one} / ${bracketed(other)}`),
  phrase(`product of ${amount} and ${amount}`, (one, other) => `${one} * ${other}`),
  phrase(`(?:difference (?:between|of)) ${amount} and ${amount}`, (one, other) => `abs(${one} - ${other})`),
  phrase(
    String.raw`remainder (?:of|when) ${amount} (?:is )?(?:divided by|/) ${amount}`,
    (one, other) => `mod(${one}, ${other})`,
  ),
  phrase(`half (?:of )?${amount}`, (whole) => `${whole} / 2`),
  phrase(`(?:one )?third of ${amount}`, (whole) => `${whole} / 3`),
  phrase(`two thirds of ${amount}`, (whole) => `2 / 3 * ${whole}`),
  phrase(`(?:one )?quarter of ${amount}`, (whole) => `${whole} / 4`),
  phrase(`three quarters of ${amount}`, (whole) => `3 / 4 * ${whole}`),
  phrase(`(?:double|twice)(?: of)? ${amount}`, (one) => `2 * ${one}`),
  phrase(`(?:triple|three times)(?: of)? ${amount}`, (one) => `3 * ${one}`),
  phrase(`square of ${amount}`, (one) => `${bracketed(one)}^2`),
  phrase(`cube of ${amount}`, (one) => `${bracketed(one)}^3`),
  phrase(`${money} factorial`, (one) => `factorial(${one})`),
  phrase(`(?:gcd|hcf|greatest common (?:divisor|factor)|highest common factor) of ${list}`, (numbers) =>
    called('gcd', numbers),
  ),
  phrase(`(?:lcm|least common multiple|lowest common multiple) of ${list}`, (numbers) =>
    called('lcm', numbers),
  ),
  phrase(String.raw`(\d+) choose (\d+)`, (all, chosen) => `combinations(${all}, ${chosen})`),
  phrase(
    String.raw`log(?:arithm)?(?: to the)? base (\d+(?:\.\d+)?)(?: of)? (\d+(?:\.\d+)?)`,
    (base, of) => `log(${of}, ${base})`,
  ),
  phrase(
    String.raw`sum of (?:all |the )?(?:whole |natural )?(?:numbers |integers )?(?:from )?(-?\d+) (?:to|through) (-?\d+)`,
    (from, to) => `sum(${from}:${to})`,
  ),
  phrase(String.raw`(\d+) (?:in|to|as) (?:binary|base 2)`, (number) => `bin(${number})`),
  phrase(String.raw`(\d+) (?:in|to|as) (?:hex|hexadecimal|base 16)`, (number) => `hex(${number})`),
  phrase(String.raw`(\d+) (?:in|to|as) (?:octal|base 8)`, (number) => `oct(${number})`),
  phrase(String.raw`(?:binary|bin) of (\d+)`, (number) => `bin(${number})`),
  phrase(String.raw`(?:hexadecimal|hex) of (\d+)`, (number) => `hex(${number})`),
  phrase(
    String.raw`(?:how long (?:does|will|would|do) (?:it|i|we|you) (?:take|need)(?: me| us)? (?:to \w+|for) )?(\d+(?:\.\d+)? [a-z]+) at (\d+(?:\.\d+)? (?:[a-z]+/[a-z]+|mph|kph|knots?|(?:miles?|kilomet(?:er|re)s?) (?:per|an) hour))`,
    (distance, speed) => `(${distance}) / (${speed}) to hours`,
  ),
]

const rounding = /^(.{1,200}?),? rounded to (\d{1,2}) (?:decimals?|decimal places?|digits)$/i
const following =
  /^(.{1,200}?),? (?:and|then|and then) (add|subtract|multiply by|divide by) (-?\d+(?:\.\d+)?(?:e\d+)?)$/i
const signs: Record<string, string> = { add: '+', subtract: '-', 'multiply by': '*', 'divide by': '/' }

/** `split 84 EUR by 3 with 15% tip` → `84 EUR * (1 + 15%) / 3`. Any other text is returned unchanged. */
export function fromPhrase(text: string): string {
  const rounded = rounding.exec(text)
  if (rounded !== null) {
    const inner = expressionIn(rounded[1] ?? '')
    if (inner !== undefined) return `round(${inner}, ${rounded[2]})`
  }
  const then = following.exec(text)
  if (then !== null) {
    const inner = expressionIn(then[1] ?? '')
    const sign = signs[(then[2] ?? '').toLowerCase()]
    if (inner !== undefined && sign !== undefined) {
      const isProduct = sign === '*' || sign === '/'
      return `${isProduct ? `(${inner})` : inner} ${sign} ${then[3]}`
    }
  }
  return direct(text)
}

/** The expression for a text, or undefined if it contains words and is not one of the questions above. */
function expressionIn(text: string): string | undefined {
  const expression = direct(text)
  return expression !== text || !/[a-z]/i.test(text) ? expression : undefined
}

function direct(text: string): string {
  for (const [pattern, expression] of phrases) {
    const groups = pattern.exec(text)
    if (groups !== null) return expression(...(groups.slice(1) as string[]))
  }
  return text
}

function phrase(
  source: string,
  expression: (...groups: string[]) => string,
): [RegExp, (...groups: string[]) => string] {
  return [new RegExp(`^(?:the |an? )?${source}$`, 'i'), expression]
}

/** `80 - 20%`. Money is multiplied by a factor because the language cannot add a percentage to a quantity. */
function changed(total: string, sign: '+' | '-', share: string): string {
  return / [A-Z]{3}$/.test(total) ? `${total} * (1 ${sign} ${share}%)` : `${total} ${sign} ${share}%`
}

/** In percent. */
function ratio(part: string, whole: string): string {
  return `${part} / ${bracketed(whole)} * 100`
}

/** In percent. */
function change(from: string, to: string): string {
  return `(${to} - ${from}) / ${bracketed(from)} * 100`
}

function called(name: string, numbers: string): string {
  return `${name}(${numbers.split(/, ?(?:and )?| and /).join(', ')})`
}

/** Parenthesizes a quantity, so that division and powers apply to it including its unit. */
function bracketed(quantity: string): string {
  return quantity.includes(' ') ? `(${quantity})` : quantity
}
