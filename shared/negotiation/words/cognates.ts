import { isEnglish } from './english.ts'
import type { Language } from './function-words.ts'
import { stemOf } from './split.ts'

const lettersMin = 6
const wordLettersMax = 40

/** Endings of international words and their English forms, longer endings first. */
const endings: Partial<
  Record<Language, readonly (readonly [foreign: RegExp, english: readonly string[]])[]>
> = {
  de: [
    [/ationen$|ation$/, ['ation']],
    [/(?:isch|ische)(?:e|en|er|es|em)?$/, ['ic', 'ical', '']],
    [/i(?:ell|elle)(?:e|en|er|es|em)?$/, ['ial']],
    [/iv(?:e|en|er|es|em)?$/, ['ive']],
    [/ier(?:en|e|t|te|ten)$/, ['e', 'ate', '']],
    [/itat(?:en)?$/, ['ity']],
    [/enz(?:en)?$/, ['ence', 'ency']],
    [/ie(?:n)?$/, ['y']],
    [/(?:en|er|ern|es|n|s|e)$/, ['', 'e']],
  ],
  fr: [
    [/ites?$/, ['ity']],
    [/tes?$/, ['ty']],
    [/iques?$/, ['ic', 'ical', 'ics']],
    [/ieu(?:x|ses?)$|eu(?:x|ses?)$/, ['ious', 'ous']],
    [/i(?:fs?|ves?)$/, ['ive']],
    [/aires?$/, ['ary']],
    [/eurs?$/, ['er', 'or']],
    [/ies?$/, ['y']],
    [/(?:er|ez|e|es|s|ee|ees|ant|ants|ante|antes)$/, ['', 'e', 'ate', 'ing']],
  ],
  es: [
    [/cion(?:es)?$/, ['tion']],
    [/sion(?:es)?$/, ['sion']],
    [/dad(?:es)?$/, ['ty']],
    [/ic[oa]s?$/, ['ic', 'ical', 'ics']],
    [/iv[oa]s?$/, ['ive']],
    [/os[oa]s?$/, ['ous']],
    [/ari[oa]s?$/, ['ary']],
    [/nci[ao]s?$/, ['nce', 'ncy']],
    [/mente$/, ['ly']],
    [/i[ao]s?$/, ['y', 'e']],
    [/(?:ar|ir|a|o|e|as|os|es)$/, ['', 'e', 'ate']],
  ],
}

/** The English form of an international word without accents and in lower case, such as `tradition` for `traditionen`. */
export function cognateOf(language: Language, word: string): string | undefined {
  if (word.length < lettersMin || word.length > wordLettersMax || !/^[a-z]+$/.test(word)) return undefined
  if (isEnglish(stemOf(word))) return undefined
  for (const [foreign, forms] of endings[language] ?? []) {
    const base = word.replace(foreign, '')
    if (base === word) continue
    for (const form of forms) {
      const candidate = `${base}${form}`
      if (candidate.length >= lettersMin - 1 && isEnglish(stemOf(candidate))) return candidate
    }
  }
  return undefined
}
