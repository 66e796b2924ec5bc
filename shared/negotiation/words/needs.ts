import { asksForWork, imperative, salutation } from './instruction.ts'
import { bare, piecesOf, withoutJoints } from './pieces.ts'

/** The maximum number of parts. Further parts belong to the last one. */
export const needsMax = 6
/** The rest of a longer instruction belongs to the last part. */
const charsMax = 20_000
/** The characters of a clause that are read to understand the next one. */
const clauseMax = 1000

/** Verbs that seldom begin an instruction but often continue one. */
const furtherVerb =
  /^(?:add|archive|assist|attach|choose|collect|delete|determine|download|email|e-mail|explore|fetch|highlight|illustrate|mail|obtain|optimi[sz]e|pick|plan|post|proofread|propose|provide|publish|recommend|remove|retrieve|save|store|suggest|tag|text|transcribe|upload|verify|do|fasst|füge|korrigiere|lösche|macht|sende|speichere|schick(?:e|t)?|ajoute|corrige|enregistre|envoie|envoyez|propose|supprime|convertissez|traduisez|añade|corrige|envía|guarda|manda|conviért|tradúc|resúm|envíal|hazl|créal|explícal)/iu
const hanVerb =
  /^(?:把.{1,40}?)?(?:总结|總結|概括|归纳|翻译|翻譯|写|寫|做|制作|製作|生成|创建|建立|画|畫|计算|計算|分析|转换|轉換|转成|转为|轉成|发送|發送|发给|查找|查询|搜索|搜尋|列出|解释|解釋|说明|說明|比较|比較|检查|檢查|整理|提取|预测|預測|告诉|告訴|推荐|推薦|修改|改写|校对|保存|导出)/u
const japaneseVerb =
  /(?:要約|翻訳|作成|作っ|変換|書い|書き|計算|教え|調べ|検索|分析|まとめ|説明|送っ|送信|比較|描い|確認|修正|整理|予測|リストアップ|抽出|にし|訳し)\p{Script=Hiragana}{0,3}[てで](?:から|ください|下さい|ほしい|欲しい|もらえますか|くれますか|いただけますか)?[。、！？?]?\s*$/u
const arabicVerb =
  /^و?(?:لخ[ّ]?ص|ترجم|اكتب|أنشئ|انشئ|احسب|ابحث|حو[ّ]?ل|اشرح|ارسم|حل[ّ]?ل|قارن|أرسل|ارسل|اعرض|رت[ّ]?ب|استخرج|صحح|اقترح|جهز|أعد|احفظ)(?:ه|ها|هم|ني|لي)?(?=$|[\s،.؟])/u

/** Wishes that ask for work, wherever they are in a sentence. */
const wish =
  /\b(?:i|we)(?:'d| would) (?:also |really )?(?:like|love) to\b|\bit would (?:also )?be (?:good|great|helpful|nice|useful|wonderful) (?:to|if)\b|\b(?:i'm|i am|we're|we are) also interested in\b/iu

/** Imperatives that are also nouns: they ask for work within a sentence only if an object follows. */
const nounToo =
  /^(?:add|answer|book|build|check|count|design|do|draft|draw|edit|email|e-mail|estimate|export|find|fix|forecast|format|group|help|highlight|list|look|mail|make|order|parse|pick|plan|play|plot|post|print|produce|project|put|read|report|review|run|say|schedule|search|send|set|show|sort|split|store|sum|tag|text|total|turn|upload|analyse|compare|liste|montre|lista|muestra|resume|corrige|suche|liste)\b/iu
const object =
  /^[\p{L}-]+?(?:-(?:le|la|les|moi|en|lui)\b|\s+(?:it|its|this|that|these|those|the|a|an|my|our|your|me|us|him|her|them|all|both|each|every|two|three|four|five|some|any|up|out|into|\d+|den|die|das|dem|der|ein|eine|einen|es|sie|ihn|mir|alle|le|la|les|l'|un|une|ce|cette|moi|tout|el|los|las|una|unos|lo|me|todo)(?![\p{L}]))/iu
const questionWord =
  /^(?:what|which|who|when|where|why|how|was|welche[rs]?|wer|wann|wo|wie|warum|quel(?:le)?s?|qui|quand|où|combien|comment|pourquoi|cu[aá]l(?:es)?|cu[aá]nto|qui[eé]n|cu[aá]ndo|d[oó]nde|qu[eé]|c[oó]mo)\b/iu
/** A verb of a subordinate clause: "a program to sort numbers and print them". */
const subordinate = /\b(?:to|that|which|who|how|what|when|where|why|if|whether)\s+(?=\p{L})/giu

/** Sentences about the form of the answer, which belong to the part before them. */
const refinement =
  /^(?:be|keep|use|avoid|do not|don't|never|only|make sure|ensure|note|remember|include|ignore|stick|limit|make (?:it|them|the \w+)(?! (?:a|an|into)\b)(?: \p{L}+){1,2}\s*[.!]?$|(?:write|answer|reply|respond)(?: it| this)? (?:in|with|as|only|briefly)\b|(?:give|list|return|output|print|say|show)(?: me)? (?:only|just|nothing)\b|(?:explain|show|give) your (?:work|steps?|reasoning|reasons?|answer)|(?:format|put|give|return) (?:it|your|the) ?(?:answer|output|result|response)?s? ?(?:in|as)\b|verwende|benutze|achte|antworte|vermeide|halte|schreibe? (?:es )?auf\b|utilise[rz]?|évite[rz]?|réponds|répondez|sois|usa|utiliza|evita|responde|sé|使用|用|不要|只|保持|لا\s|استخدم)(?=$|[\s\p{P}\p{Script=Han}])/iu
const emptyRequest =
  /^(?:help(?: me)?(?: out)?|(?:do|complete|perform)|i need (?:your |some )?help|help me)?(?: with)?(?: this| these| that| it| something| the following)?(?: (?:tasks?|steps?|things?))?\s*[.!?:：]*$/iu
const germanInfinitive =
  /(?:machen|erstellen|übersetzen|schreiben|zusammenfassen|berechnen|prüfen|suchen|zeichnen|senden|schicken|erklären|vergleichen|umwandeln)\s*[?.!]*$/iu
const germanModal = /\b(?:kannst du|können sie|könnten sie|könntest du|ich möchte|sollst du)\b/iu

const quoted =
  /"[^"\n]{1,2000}"|“[^“”"\n]{1,2000}[”"]|„[^„“”\n]{1,2000}[“”]|«[^«»\n]{1,2000}»|「[^「」\n]{1,2000}」|『[^『』\n]{1,2000}』|`[^`\n]{1,2000}`|(?<=^|\s)'[^'\n]{1,2000}'(?=$|[\s,.;:!?])/gu

/**
 * Splits the instruction of a message (`taskTextOf`) into the parts that ask for work, in the order of the text. The form of the
 * text (sentences, lists, semicolons) and words such as "and then" separate parts in English, German, French, Spanish, Chinese,
 * Japanese and Arabic. A sentence that asks for nothing belongs to the part before it, or to the first part. Returns at most six
 * parts. An instruction with one part is returned unchanged.
 */
export function needsOf(instruction: string): string[] {
  const text = instruction.slice(0, charsMax)
  const masked = text.replace(quoted, (all) => 'x'.repeat(all.length))
  const starts: number[] = []
  let start = 0
  let isAsking = false
  for (const { from, to, isWithinSentence } of piecesOf(masked)) {
    if (starts.length === needsMax - 1) break
    const piece = masked.slice(from, to)
    if (!asks(piece, to === masked.length)) continue
    const before = masked.slice(Math.max(start, from - clauseMax), from)
    if (isAsking && (!isWithinSentence || continues(before, piece))) {
      starts.push(start)
      start = from
    }
    isAsking = true
  }
  if (starts.length === 0) return [instruction]
  starts.push(start)
  return starts.map((at, index) => withoutJoints(instruction.slice(at, starts[index + 1])))
}

/** Whether a piece asks for work by itself. */
function asks(piece: string, isLast: boolean): boolean {
  const words = bare(piece)
  if (words === '' || salutation.test(piece.trim()) || emptyRequest.test(words) || refinement.test(words))
    return false
  if (isImperative(words)) return true
  // "I need the following:" announces the parts.
  if (/[:：]\s*$/u.test(piece) && !isLast) return false
  return asksForWork.test(piece.trim()) || wish.test(piece)
}

const isImperative = (words: string) =>
  imperative.test(words) ||
  furtherVerb.test(words) ||
  hanVerb.test(words) ||
  japaneseVerb.test(words) ||
  arabicVerb.test(words)

/** Whether a piece after a joint is a separate part, rather than the rest of the clause before it. */
function continues(before: string, piece: string): boolean {
  const [first, second] = [bare(clauseOf(before)), bare(piece)]
  if (japaneseVerb.test(before.trimEnd()) || hanVerb.test(first) || arabicVerb.test(first))
    return isImperative(second)
  if (germanModal.test(before) && germanInfinitive.test(withoutJoints(first)))
    return germanInfinitive.test(second)
  // The verbs of "find and fix the bug" share their object.
  if (wordsIn(withoutJoints(first)) < 2) return false
  if (questionWord.test(second)) return questionWord.test(first)
  if (!isImperative(second)) return false
  if (hasSubordinateVerb(first)) return false
  return !nounToo.test(second) || object.test(second)
}

function hasSubordinateVerb(clause: string): boolean {
  for (const { index, 0: word } of clause.matchAll(subordinate))
    if (index > 0 && (!/^to\s/iu.test(word) || imperative.test(clause.slice(index + word.length))))
      return true
  return false
}

/** The last sentence of a text. */
const clauseOf = (text: string) =>
  text.split(/(?<=[.!?。！？;；])\s*|\n/u).findLast((one) => one.trim() !== '') ?? ''
const wordsIn = (text: string) => text.match(/[\p{L}\p{N}'’-]+/gu)?.length ?? 0
