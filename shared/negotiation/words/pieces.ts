/** Where a piece may begin. Words join parts of a sentence, so that they are weaker than the end of a sentence. */
interface Boundary {
  /** The first character after the mark or the word. */
  at: number
  isWithinSentence: boolean
}

/** The end of a sentence or a line, and marks that end a clause in the same way. */
const sentenceEnd =
  /(?<=[.!?؟][)"”»]?)(?<!\b(?:e\.g|i\.e|etc|vs|dr|mrs?|ms|prof|no|nr|bzw|ca|approx|z\.\s?b|p\.\s?ex|p\.\s?ej)\.|(?:^|\n)\s{0,8}\d{1,2}\.)\s{1,8}(?=\S)|[。！？；;؛]\s{0,8}|\n\s{0,8}/giu
/** Words and marks between two parts of a sentence. They separate parts only if both sides contain a request. */
const joints =
  /[,，،]?\s{1,8}(?:and|und|et|y|e|&)\s{1,8}|[,，،]?\s{1,8}(?:and\s{1,8})?(?:then|afterwards|after that|also|(?:und\s{1,8})?(?:dann|danach|anschlie(?:ß|ss)end|außerdem)|(?:et\s{1,8})?(?:puis|ensuite|aussi|après cela)|(?:y\s{1,8})?(?:luego|despu[eé]s|tambi[eé]n|adem[aá]s))\s{1,8}|,\s{1,8}|[，、,]?\s{0,8}(?:然后|然後|接着|接著|并且|並且|之后|之後|最后|最後|同时|同時|其后)|，|[并並再](?=\p{Script=Han})|(?<=[てで])、|(?<=てから)、?|\s{1,8}(?:و?(?:ثم|بعد ذلك|أيض(?:ا|اً|ًا)|كذلك))\s{1,8}|\s{1,8}(?=و\p{Script=Arabic}{3,})|،\s{0,8}/giu

/** Words before the verb of a part: conjunctions, order, politeness and wishes. */
const leadIn =
  /^(?:[\s,，、;:：.()*•·–—-]+|\d{1,2}[.)]\s|[a-h]\)\s|(?:and|then|also|now|next|first(?:ly)?|second(?:ly)?|third(?:ly)?|finally|lastly|additionally|besides|furthermore|moreover|in addition|afterwards|after that|please|pls|plz|kindly|can you|could you|would you|will you|i (?:need|want)(?: you)? to|i(?:'d| would) like(?: you)? to|help me(?: to)?|let's|just|quickly|und|dann|danach|anschlie(?:ß|ss)end|außerdem|zuerst|zunächst|zum schluss|bitte|kannst du|können sie|könnten sie|könntest du|et|puis|ensuite|aussi|enfin|d'abord|après cela|après ça|s'il (?:te|vous) pla[iî]t|peux-tu|pouvez-vous|pourriez-vous|merci de|y|e|luego|despu[eé]s|tambi[eé]n|adem[aá]s|primero|finalmente|por favor|puedes|podr[ií]as|puede usted)(?=[\s,:])|(?:请|請|帮我|幫我|麻烦你?|麻煩你?|首先|然后|然後|接着|接著|并且|並且|并|並|再|之后|之後|最后|最後|同时|同時|还要|也|それから|その後|次に|また|さらに|まず|そして)|(?:و?(?:ثم|بعد ذلك|أيض(?:ا|اً|ًا)|كذلك|من فضلك|أول(?:ا|اً|ًا))(?=\s)))/iu

/** A part of a text that may ask for work by itself. */
interface Piece {
  from: number
  to: number
  isWithinSentence: boolean
}

/** Splits a text at the ends of its sentences and at the words that join their parts. */
export function piecesOf(text: string): Piece[] {
  const boundaries: Boundary[] = [
    ...[...text.matchAll(sentenceEnd)].map((match) => ({
      at: match.index + match[0].length,
      isWithinSentence: false,
    })),
    ...[...text.matchAll(joints)].map((match) => ({
      at: match.index + match[0].length,
      isWithinSentence: true,
    })),
  ].toSorted((a, b) => a.at - b.at || Number(a.isWithinSentence) - Number(b.isWithinSentence))
  const pieces: Piece[] = []
  let last: Boundary = { at: 0, isWithinSentence: false }
  for (const boundary of boundaries) {
    // "Then" at the beginning of a sentence is not a piece.
    const length = boundary.at - last.at
    if (length === 0 || (length <= jointMax && bare(text.slice(last.at, boundary.at)) === '')) continue
    pieces.push({ from: last.at, to: boundary.at, isWithinSentence: last.isWithinSentence })
    last = boundary
  }
  pieces.push({ from: last.at, to: text.length, isWithinSentence: last.isWithinSentence })
  return pieces
}

/** A piece without the words before its verb. */
export function bare(piece: string): string {
  let rest = `${piece.trim()} `
  for (let count = 0; count < 12; count += 1) {
    const next = rest.replace(leadIn, '')
    if (next === rest) break
    rest = next
  }
  return rest.trim()
}

const leadingJoint =
  /^(?:[,，、،;；؛:：]|(?:[-*•·–—]|\d{1,2}[.)])\s|(?:and|then|also|afterwards|after that|und|dann|danach|anschlie(?:ß|ss)end|außerdem|et|puis|ensuite|y|luego|despu[eé]s|tambi[eé]n|adem[aá]s)[\s,](?=\s*\S))/iu
const trailingJoint =
  /(?:[,，、،;；؛]|(?<=[\s,])(?:and|then|also|afterwards|after that|und|dann|danach|anschlie(?:ß|ss)end|außerdem|et|puis|ensuite|aussi|y|luego|despu[eé]s|tambi[eé]n|adem[aá]s|ثم|\d{1,2}[.)]|[-*•·])|然后|然後|接着|接著|并且|並且|之后|之後|最后|最後|同时|同時|[并並再])$/iu
const jointMax = 24

/** A part without the words that joined it to the others. */
export function withoutJoints(text: string): string {
  let rest = text.trim()
  for (let count = 0; count < 12; count += 1) {
    const kept = rest.replace(leadingJoint, '').trim()
    const tail = kept.slice(-jointMax)
    const next = `${kept.slice(0, kept.length - tail.length)}${tail.replace(trailingJoint, '')}`.trim()
    if (next === rest) break
    rest = next
  }
  return rest
}
