/** The languages that are translated, by their ISO 639-1 codes. */
export const languages = ['ar', 'de', 'es', 'fr', 'ja', 'zh'] as const
export type Language = (typeof languages)[number]

/**
 * The words with which sentences are built, as `english:foreign,foreign`. They tell languages apart and take the place of their
 * English words. A hyphen means that there is no word.
 */
const tables: Record<Language, string> = {
  de: `-:der,die,das,den,dem,des,ein,eine,einen,einem,einer,eines,sich,es,doch,mal,eben,halt,denn,dazu,dabei,dafür,davon,damit,daraus,darin,daran,darauf,darüber,worden,wurde,wurden,wird,werden,werde,würde,würden,würdest i:ich me:mir,mich my:mein,meine,meinen,meinem,meiner,meines we:wir us:uns our:unser,unsere,unseren,unserem,unserer,unseres you:du,dich,dir,euch,ihr,ihnen your:dein,deine,deinen,deinem,deiner,deines,euer,eure,euren,eurer,ihre,ihren,ihrem,ihrer,ihres he:er him:ihm,ihn his:seine,seinen,seinem,seiner,seines they:sie this:dies,diese,dieser,diesen,diesem,dieses,folgende,folgenden,folgender that:jene,jener,jenen,dass,daß which:welche,welcher,welchen,welchem,welches who:wer,wem,wen what:was where:wo,wohin,woher when:wann,wenn why:warum,weshalb,wieso how:wie and:und,sowie or:oder but:aber,sondern not:nicht no:kein,keine,keinen,keinem,keiner,keines,nein with:mit without:ohne for:für,fürs from:von,vom,aus to:zu,zum,zur,nach,ans in:im,ins,in on:auf,am,an at:bei,beim by:durch about:über,um under:unter between:zwischen before:vor is:ist are:sind,seid was:war,waren be:sein,sei can:kann,kannst,können,könnt could:könnte,könntest,könnten must:muss,muß,müssen,musst should:soll,sollst,sollte,sollten,sollen have:habe,haben,hast,hat had:hatte,hatten,hätte if:ob,falls all:alle,alles,allen,aller some:einige,einigen,etwas,paar more:mehr as:als also:auch,außerdem only:nur here:hier there:da,dort now:jetzt,nun then:dann because:weil many:viele,vielen much:viel very:sehr again:wieder,nochmal still:noch already:schon until:bis since:seit`,
  fr: `-:le,la,les,l,un,une,d,du,se,s,y,en,m,t,c,ce,au,aux,donc,très,pas,ça,cela,ceci,été,être,suis,es,serait,serais i:je,j me:me,moi my:mon,ma,mes we:on us:nous our:notre,nos you:tu,te,toi,vous your:ton,ta,tes,votre,vos he:il she:elle they:ils,elles his:son,sa,ses him:lui their:leur,leurs this:cet,cette,ces,celui,celle,ceux which:quel,quelle,quels,quelles,lequel,laquelle who:qui that:que,qu what:quoi where:où when:quand why:pourquoi how:comment and:et or:ou but:mais not:ne,n no:non,aucun,aucune with:avec without:sans for:pour,afin from:de,des,depuis to:à in:dans on:sur at:chez by:par about:concernant under:sous between:entre before:avant after:après is:est are:sont,sommes,êtes was:était,étaient,étais can:peux,peut,pouvez,peuvent,puis could:pourrais,pourriez,pourrait,pourrez must:dois,doit,devez should:devrais,devrait,devriez have:ai,avez,avons,ont,as,a,avoir had:avait,avais if:si,lorsque all:tout,tous,toute,toutes some:quelques,quelque more:plus as:comme also:aussi,également only:seulement here:ici there:voilà now:maintenant then:puis,ensuite,alors because:car,parce many:plusieurs much:beaucoup again:encore already:déjà until:jusqu,jusque`,
  es: `-:el,la,los,las,lo,un,una,unos,unas,se,del,al,le,les,ha,han,he,haber,sido,ser,estar,hay,pues i:yo me:me,mí my:mi,mis we:nosotros us:nos our:nuestro,nuestra,nuestros,nuestras you:tú,te,ti,usted,ustedes,os your:tu,tus,vuestro,vuestra he:él she:ella they:ellos,ellas his:su,sus this:este,esta,estos,estas,esto,siguiente that:que,ese,esa,esos,esas,eso,aquel,aquella which:cuál,cuáles,cual who:quién,quien,quiénes what:qué where:dónde,donde when:cuándo,cuando why:porqué how:cómo and:y,e or:o,u but:pero,sino not:no with:con without:sin for:para from:de,desde to:a in:en on:sobre at:hacia by:por about:acerca under:bajo between:entre before:antes after:después is:es,está are:son,están,estás,eres,soy,estoy was:era,estaba,fue can:puedes,puede,pueden,puedo,podemos could:podrías,podría,podrían,pudieras must:debo,debe,debes should:debería,deberías have:tengo,tiene,tienes,tenemos,tener if:si all:todo,todos,toda,todas some:algún,alguna,algunos,algunas,algo more:más as:como also:también,además only:solo,sólo here:aquí there:allí,ahí now:ahora then:luego,entonces because:porque many:muchos,muchas much:mucho,mucha very:muy again:otra,otro already:ya until:hasta any:cualquier`,
  ar: `-:قد,لقد,إن,أن,ان,انه,أنه,أنها,التي,الذي,الذين,هو,هي,هم,كان,كانت,يكون,تكون,كي,لكي,ثم,إلي i:أنا,انا,لي we:نحن us:لنا you:أنت,انت,لك this:هذا,هذه,هؤلاء that:ذلك,تلك what:ما,ماذا,ماهو,ماهي who:مَن where:أين,اين when:متى,عندما why:لماذا how:كيف which:أي,اي and:و or:أو,او but:لكن,ولكن not:لا,ليس,لم,لن,غير with:مع without:بدون,دون for:لأجل,لاجل from:من,منذ,منه,منها to:إلى,الى in:في,فيه,فيها on:على,عليه,عليها about:عن,عنه,عنها,بشأن between:بين before:قبل after:بعد can:يمكن,يمكنك,يمكنني,هل,أيمكنك,بإمكانك,تستطيع if:إذا,اذا,لو all:كل,جميع some:بعض more:أكثر,اكثر as:كما,حيث also:أيضا,ايضا,كذلك only:فقط here:هنا there:هناك now:الآن,الان because:لأن,لان very:جدا until:حتى`,
  ja: `-:の,に,は,を,た,が,で,て,と,し,れ,さ,も,する,から,な,こと,として,い,や,など,なっ,ため,よう,また,もの,あり,まで,られ,なる,へ,か,だ,これ,それ,です,ます,ます,ました,ませ,ん,ので,のみ,でき,できる,つ,お,ご,ください,下さい,いただけ,もらえ,くれ,という,ある,いる,おり,そして,にて,では,ながら,つい,について,に関する,です,でしょう,たい,ほしい,み,よ,ね i:私,僕,俺,わたし we:私達,私たち you:あなた this:この,こちら that:その,あの what:何,なに where:どこ when:いつ why:なぜ how:どう,どうやっ,どうやって which:どの,どれ,どちら who:誰 or:または,あるいは,それとも and:および,及び,並びに but:しかし,けど,でも not:ない,なく,ず more:もっと all:すべて,全て,全部 very:とても,非常`,
  zh: `-:的,地,得,着,了,过,吗,呢,吧,啊,嗎,過,把,被,将,將,些,个,個,一个,一個,一下,一些,一份,一张,一篇,一段,位,篇,份,张,張,条,條,是,就,都,也,很,会,會,那,及,之,其,所,于,於,来,來,去 i:我 my:我的 we:我们,我們,咱们 you:你,您,你们,你們 your:你的,您的 he:他 she:她 it:它 they:他们,他們,她们 this:这,这个,这些,這,這個,這些,该,以下,此 that:那个,那些,那個 what:什么,什麼,甚麼,啥 which:哪,哪个,哪些,哪個 who:谁,誰 where:哪里,哪儿,哪裡 when:什么时候,何时,何時 why:为什么,為什麼,为何 how:怎么,怎样,如何,怎麼,怎樣 and:和,与,與,以及,并,並,跟 or:或,或者,还是,還是 but:但,但是 not:不,没有,没,別,别,沒有 with:带 for:为,為,给,給,为了,為了 from:从,從,自 to:到,向,对,對 in:在,里,裡,中 on:上 about:关于,關於,有关 can:能,可以,可,能否,能不能,可否,能够 have:有 if:如果,若 all:所有,全部,每 some:几,幾 more:更,更多,多 also:还,還 very:非常 because:因为,因為`,
}

/** English function words, which tell English apart, and English words that are function words of another language. */
const english =
  'the a an and or of to in for on with at by from is are was were be been i you he she it we they my your his her its our their this that these those what which who how when where why can could would should will may please not do does did have has had me us them as if but about into any some all more than then there so no just let out up im ai also car comment die hat man plus pour sans sin solo son tout war'

/** Bits of the languages in which a word is a function word; `english` is the lowest one. */
export const englishBit = 1
export const bitOf = (language: Language): number => 2 << languages.indexOf(language)

let kept: { meanings: Map<Language, Map<string, string>>; bits: Map<string, number> } | undefined

function read() {
  if (kept !== undefined) return kept
  const bits = new Map(english.split(' ').map((word) => [word, englishBit]))
  const meanings = new Map<Language, Map<string, string>>()
  for (const language of languages) {
    const own = new Map<string, string>()
    for (const entry of tables[language].split(' ')) {
      const [meaning = '', words = ''] = entry.split(':')
      for (const word of words.split(',')) {
        own.set(word, meaning === '-' ? '' : meaning)
        bits.set(word, (bits.get(word) ?? 0) | bitOf(language))
      }
    }
    meanings.set(language, own)
  }
  kept = { meanings, bits }
  return kept
}

/** The English word of a function word in lower case, which may be empty; undefined if it is none. */
export const functionWord = (language: Language, word: string): string | undefined =>
  read().meanings.get(language)?.get(word)

/** The languages in which a word is a function word, as bits; 0 if there is none. */
export const functionBits = (word: string): number => read().bits.get(word) ?? 0
