import { currencies } from './currencies.ts'

/** Questions about shares, tips, discounts and splitting, rewritten as a whole to one expression. */

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
  phrase(`(?:add|increase|raise) ${percent} to ${money}`, (share, total) => changed(total, '+', share)),
  phrase(`(?:increase|raise|grow) ${money} by ${percent}`, (total, share) => changed(total, '+', share)),
  phrase(`(?:decrease|reduce|lower|cut) ${money} by ${percent}`, (total, share) =>
    changed(total, '-', share),
  ),
  phrase(`(?:subtract|take|deduct) ${percent} from ${money}`, (share, total) => changed(total, '-', share)),
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
  phrase(
    String.raw`(?:how long (?:does|will|would|do) (?:it|i|we|you) (?:take|need)(?: me| us)? (?:to \w+|for) )?(\d+(?:\.\d+)? [a-z]+) at (\d+(?:\.\d+)? (?:[a-z]+/[a-z]+|mph|kph|knots?|(?:miles?|kilomet(?:er|re)s?) (?:per|an) hour))`,
    (distance, speed) => `(${distance}) / (${speed}) to hours`,
  ),
]

/** `split 84 EUR by 3 with 15% tip` → `84 EUR * (1 + 15%) / 3`. A text that is no such question comes back as it is. */
export function fromPhrase(text: string): string {
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

/** `80 - 20%`. Money takes a factor, because the expression language has no sum of a quantity and a percentage. */
function changed(total: string, sign: '+' | '-', share: string): string {
  return / [A-Z]{3}$/.test(total) ? `${total} * (1 ${sign} ${share}%)` : `${total} ${sign} ${share}%`
}

/** In percent. */
function ratio(part: string, whole: string): string {
  return `${part} / ${bracketed(whole)} * 100`
}

/** A quantity is divided by and raised to a power as a whole, with its unit. */
function bracketed(quantity: string): string {
  return quantity.includes(' ') ? `(${quantity})` : quantity
}
