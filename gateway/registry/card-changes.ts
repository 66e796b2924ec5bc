import { isDeepStrictEqual } from 'node:util'
import type { JsonObject, JsonValue } from '@parley/wire/model/task'
import { timestamp } from '@parley/wire/model/timestamp'
import type { AgentEntry, CardChange } from './entry.ts'

/** Maximum number of recorded changes. Older changes are dropped. */
const changesMax = 50
/** A longer value is omitted, but the change itself is recorded. */
const valueMaxChars = 2048
/** Identity and signatures are checked elsewhere, and skills are compared one by one. */
const ignoredFields = new Set(['id', 'did', 'signatures', 'skills'])

/** Returns the changes recorded so far, followed by the differences between the known and the new card. */
export function cardChanges(
  known: Pick<AgentEntry, 'card' | 'skills' | 'cardChanges'>,
  next: Pick<AgentEntry, 'card' | 'skills' | 'relay'>,
): CardChange[] {
  const at = timestamp()
  const fields = differences(fieldsOf(known.card, next), fieldsOf(next.card, next))
  const skills = differences(skillsOf(known), skillsOf(next))
  const added = [...fields, ...skills].map(([field, before, after]) => ({
    at,
    field: field.slice(0, 200),
    ...valueField('before', before),
    ...valueField('after', after),
  }))
  return [...(known.cardChanges ?? []), ...added].slice(-changesMax)
}

type NamedValues = ReadonlyMap<string, JsonValue>

function differences(
  before: NamedValues,
  after: NamedValues,
): [string, JsonValue | undefined, JsonValue | undefined][] {
  return [...new Set([...before.keys(), ...after.keys()])].flatMap((name) =>
    isDeepStrictEqual(before.get(name), after.get(name)) ? [] : [[name, before.get(name), after.get(name)]],
  )
}

/** `url` is where the relay calls a foreign agent. For other agents, the address of the entry counts. */
function fieldsOf(card: JsonObject, { relay }: Pick<AgentEntry, 'relay'>): NamedValues {
  const isIgnored = (name: string) => ignoredFields.has(name) || (name === 'url' && relay === undefined)
  return new Map(Object.entries(card).filter(([name]) => !isIgnored(name)))
}

function skillsOf({ skills }: Pick<AgentEntry, 'skills'>): NamedValues {
  return new Map(skills.map((skill) => [`skills.${skill.id}`, skill]))
}

function valueField(name: 'before' | 'after', value: JsonValue | undefined): Record<string, JsonValue> {
  return value === undefined || JSON.stringify(value).length > valueMaxChars ? {} : { [name]: value }
}
