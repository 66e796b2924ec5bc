import { currencies } from './currencies.ts'

const signs: Record<string, string> = { '€': 'EUR', $: 'USD', '£': 'GBP', '¥': 'JPY', '₹': 'INR' }
const names: Record<string, string> = {
  euro: 'EUR',
  euros: 'EUR',
  dollar: 'USD',
  dollars: 'USD',
  bucks: 'USD',
}

const codes = [...currencies].join('|')
const sign = '[€$£¥₹]'
const digits = String.raw`\d+(?:\.\d+)?(?:e\d+)?`
const scales: Record<string, string> = { thousand: 'e3', million: 'e6', billion: 'e9', trillion: 'e12' }

/** Rewrites numbers in the notation of the expression language: `$1,250` → `1250 USD`, `89,90` → `89.90`, `10k` → `10e3`, `3 x 4` → `3 * 4`. */
export function plainNumbers(text: string): string {
  return (
    withoutCommas(text)
      .replace(/(?<=\d)k\b/g, 'e3')
      .replace(
        /(?<=\d) (thousand|million|billion|trillion)\b/gi,
        (_, word: string) => scales[word.toLowerCase()] ?? '',
      )
      .replace(new RegExp(`(?<=\\d)\\s*(${sign})(?!\\d)`, 'g'), (_, mark: string) => ` ${signs[mark]}`)
      .replace(
        new RegExp(`(${sign})\\s*(${digits})`, 'g'),
        (_, mark: string, number: string) => `${number} ${signs[mark]}`,
      )
      .replace(
        /(?<=\d)\s*\b(euros?|dollars?|bucks)\b/gi,
        (_, name: string) => ` ${names[name.toLowerCase()]}`,
      )
      .replace(
        new RegExp(`(?<=\\d)\\s*\\b(${codes})\\b`, 'gi'),
        (_, code: string) => ` ${code.toUpperCase()}`,
      )
      .replace(new RegExp(`(?<=\\b(?:to|in|into) )(${codes})$`, 'i'), (code) => code.toUpperCase())
      // `0x10` is hexadecimal.
      .replace(/(?<=\d)(?:\s+x\s*|(?<!\b0)x\s*)(?=\d)/g, ' * ')
  )
}

/**
 * `1,250,000 / 4` → `1250000 / 4`, `1.234,56` → `1234.56`. Commas that separate values in brackets or lists are kept.
 */
function withoutCommas(text: string): string {
  if (/[()[\]{}]/.test(text)) return text
  const grouped = text.replace(/(?<![\w.,])\d{1,3}(?:,\d{3})+(?![\d,])/g, (number) =>
    number.replaceAll(',', ''),
  )
  if (/\b(?:average|mean|median|sum|max|min|maximum|minimum|gcd|hcf|lcm|common)\b/i.test(text)) return grouped
  return grouped.replace(/(?<![\w.,])\d+(?:\.\d{3})*,\d{1,2}(?![\d,])/g, (number) =>
    number.replaceAll('.', '').replace(',', '.'),
  )
}
