/**
 * Words and constructions that do not belong in this project's technical English. Each pattern is matched against one
 * sentence, ignoring case. Code spans are replaced with `X` beforehand, so API names are never hits.
 * `tools/prose/prose.ts <folder>` shows how often a pattern matches elsewhere. A pattern that is common in the
 * documentation of established libraries is ordinary English and has no place here.
 */
export interface OddWord {
  pattern: RegExp
  instead: string
}

const words: [pattern: string, instead: string][] = [
  // Verbs of speech for what programs do
  ['(?:told|tells|telling|retold)', 'reports, notifies, returns, indicates, distinguishes'],
  ['asked', 'requested, queried, called'],
  ['asks? (?:again|around|itself|themselves|by itself)', 'retries, queries'],
  ['(?:hears?|heard)(?! from\\b)', 'receives, is notified'],
  ['says (?:what|which|how|who|when|where|nothing|so|no|that it|of)', 'states, specifies, returns'],
  ['(?:is|are|was|were|be) said(?! to\\b)', 'is stated, is reported'],
  ['(?:knows?|known|knew) of', 'has, stores, is aware of'],
  ['lets? (?:\\w+ ){1,4}know of', 'notifies'],

  // People for software
  ['(?:nobody|somebody|everybody|anybody)', 'no client, another process, every caller: name it'],
  ['(?:whoever|whomever|whatever happened)', 'the caller that, any client that: name it'],
  ['(?:is|are|of|know|knows|known|says|those|ones?|all) whose', 'name the owner; with, that has'],
  ['whom', 'name the subject: the caller that …'],
  ['strangers?', 'external agent, unknown caller'],
  ['newcomers?', 'new agent'],

  // Places and postures for state
  ['(?:stands?|stood|standing)(?! (?:for|in for|alone|out|up)\\b)', 'is, is stored in, is listed in'],
  ['beside', 'next to, in addition to'],
  ['aside(?! from\\b)', 'ejected, excluded; next to'],
  ['(?:lies|lie|lay|lain)(?! (?:outside|within|between|halfway|about|at a)\\b)', 'is, is stored in'],
  ['(?:is|are|was|were|be|been|while|what is) away', 'is unreachable, is down'],
  ['(?:is|are|was|were) (?:there|here) (?:again|any ?more|yet)', 'is available again, no longer exists'],
  ['(?:fall|falls|fell|fallen|is|was|are|goes|went) silent', 'stops responding'],
  ['silent (?:agent|server|store|process|one|gateway)s?', 'unresponsive agent'],
  ['leaves? (?:\\w+ )?alone', 'ignores, does not change'],

  // House vocabulary
  ['houses?', 'deployment, cluster, project'],
  ['(?<!(?:chat|plenty of|more|enough|no) )rooms?(?! (?:for|in|to|left)\\b)', 'package, folder; capacity'],
  ['floors|floor (?:plan|below|above|of)|(?:own|same|this|that|each) floor', 'layer'],
  ['whereabouts', 'task locator, location'],
  ['pupils?', 'training examples, feedback model'],
  ['lessons?', 'training examples'],
  ['(?:teach|teaches|taught)', 'trains, adds a training example'],
  ['enrol(?:s|led|ling|ment|l)?', 'adds, registers'],
  ['(?:keep|keeps|kept)[- ]clean', 'retention, removes expired rows'],
  ['(?:in-turn|one-wait|ask-around)', 'keyed mutex, request deadline, fan-out'],
  ['breaths?', 'yields to the event loop'],
  ['(?:waits?|waiting|stands?) in (?:one |a |the )?line', 'is queued'],
  ['line of (?:tasks|jobs|work)', 'queue'],
  ['(?:mend|mends|mended)', 'fix, repair'],
  ['purses?', 'account, wallet'],
  ['likeness', 'similarity'],
  ['dearest', 'most expensive'],

  // Filler and archaisms
  ['but for(?! (?:now|the time|example|instance|all)\\b)', 'except'],
  ['without end', 'indefinitely'],
  ['(?:given|gives?|gave|giving) back', 'returns, releases'],
  ['held on to', 'kept'],
  ['(?:is|are|was|were|runs?|does|do|exists?|serves?) no more(?=[.,;:)]|$)', 'no longer'],
  ['(?:has|have|had) to do with', 'relates to'],
  ['of late', 'recently'],
  ['all the same(?=[.,;:)]|$)', 'still'],
  ['nothing of (?:it|them|this|that|what|the|a)', 'no part of'],
  ['anew', 'again'],
  [
    '(?<!\\b(?:all|several|many|multiple|two|three|both|every|everything|whole|more)\\b[^.;:]{0,60})at once',
    'immediately, concurrently, or nothing',
  ],
  ['meanwhile', 'in the meantime: name the event'],
  ['by then', 'name the event: before the deadline'],
  ['for good', 'permanently'],
  ['for ever', 'forever, without a limit'],
  ['in vain', 'without success'],
  ['nothing but', 'only'],
  ['no less', 'at least'],
  ['once more', 'again'],
  ['again and again', 'repeatedly'],
  ['so (?:many|long|often|much) (?!as\\b|that\\b|more\\b|of the\\b|\\w+ that\\b)', 'state the quantity'],
  ['(?<!\\b(?:stands?|let|left|leav\\w+)\\b[^.;:]{0,60})alone(?=[.,;:)]|$)', 'only'],
  ['shall(?! (?:I|we)\\b)', 'must, should'],
  ['in the moment', 'when'],
  ['holds? (?:it |them )?to (?:it|them)', 'enforces, is checked against'],
  ['held to', 'checked against'],
  ['lets? (?:it|them)? ?go|let go', 'releases'],
  ['goes on|go on|went on', 'continues, is forwarded'],
  ['on (?:its|their) own account', 'independently'],

  // Relative clauses without a noun
  ['all that(?! (?:matters|remains)\\b)', 'everything that, each …, the … that'],
  [
    '(?<!regardless )(?:for|of|to|by|with|from|alone|at|on|and|or|but|that|as) who(?! (?:am|are)\\b)',
    'the caller that …',
  ],
  [
    '(?<!(?:which|that|this) )(?:is|are|was) what (?:is|was|are|were|it|they|the|an?|came|comes|stands|waits)',
    'name the subject',
  ],
  [
    '(?<!(?:regardless|depending|depends|based) )(?:of|than|for|from|with|by|on|to) what (?:is|was|are|were|it|they|came|comes|the|an?)',
    'name the object',
  ],
  [
    'what (?:came|comes|waits?|waited|lies|stands|goes|went|left|leaves)',
    'name the subject: pending deliveries',
  ],
  ['(?:those|the ones?) (?:who|whose)', 'clients that, callers that'],
  ['(?:comes?|came) (?:of|to that|to it)', 'results in'],
  ["another['’]s|others['’]|somebody['’]s", 'of another owner'],
  ['of (?:ours|theirs|mine)', 'our own, name the owner'],
  ['of (?:its|their|our|his) own', 'separate, dedicated, its own …'],
  [
    '(?<!(?:soon|long|far|well|,) )as (?:it|they) (?:is|are|was|were|came|comes?|should|stood|stands?)(?=[.,;:)]|$| (?:in|on|at|for|from)\\b)',
    'unchanged',
  ],
  [
    '(?<!(?:there|here|there’s|which|see|what) )(?:is|are|was|were) no (?!longer|more|such|way|need|reason|point|problem|guarantee|different|other|matter|match|one\\b|further|time|op\\b|good|use|\\w*er\\b)\\w+',
    'is not a …, has no …',
  ],
  ['(?:has|have|had|where) none', 'has no …'],
  ['(?<!(?:are|is|was|were|be|been|yet|still|also) )to be (?:told|had|found out|seen)', 'name the actor'],
  ['waited for', 'awaited: name who waits'],
]

/** Patterns that match at the beginning of a sentence that is not a question. */
const openings: [pattern: string, instead: string][] = [
  ['Who(?:m)?', 'name the subject: callers that …'],
  ['What(?! (?:actually|follows|happens|if|about|to)\\b)', 'name the subject or the value'],
  ['Nothing (?:of|ends?|waits?|comes|goes|knows|tells)', 'name the subject: no caller …, no file …'],
  ['None (?:is|are|was|where|when|has|knows|but|left)', 'name the subject'],
  ['Those (?:that|who|of|with|without|in|on|from|to|which)', 'name them'],
  ['Of (?:an?|the|its|their|that|those|these|all|what|it|each|two|several)', 'begin with the subject'],
  ['That of', 'name the thing'],
  ['All that', 'everything that, each …'],
  ['As (?:it|they|the gateway|an? \\w+) (?:is|are|does|asks|would|has)', 'begin with the subject'],
  ['With (?:it|them|what)', 'begin with the subject'],
  ['So (?:many|long|often|much)', 'state the quantity'],
  ['To be (?:called|used|read|given|set)', 'imperative: Call this before …'],
]

/** The original list of this lint, reported separately for comparison with earlier figures. */
export const firstList = /\b(?:told|tells|whoever|nobody|stands|asked|beside|aside|anew|somebody|whose)\b/gi

export const oddWords: OddWord[] = [
  ...words.map(([pattern, instead]) => ({ pattern: new RegExp(`\\b(?:${pattern})(?!\\w)`, 'gi'), instead })),
  ...openings.map(([pattern, instead]) => ({
    pattern: new RegExp(`^["“(]?${pattern}\\b(?!.*\\?$)`, 'gi'),
    instead,
  })),
]
