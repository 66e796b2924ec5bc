import { isDeepStrictEqual } from 'node:util'
import type { JsonObject, JsonValue } from '@parley/wire/model/task'
import { timestamp } from '@parley/wire/model/timestamp'
import type { AgentEntry, CardChange } from './entry.ts'

/** More are dropped, the oldest first. */
const kept = 50
/** Longer values are not kept: that they changed is what counts. */
const valueMaxChars = 2048
/** Who the card is about and where it stands is looked at elsewhere; skills are compared one by one. */
const elsewhere = new Set(['id', 'did', 'url', 'skills'])

/** The differences so far and those of the new card: other skills, another price, or any other field. */
export function cardChanges(
  known: Pick<AgentEntry, 'card' | 'skills' | 'cardChanges'>,
  next: Pick<AgentEntry, 'card' | 'skills'>,
): CardChange[] {
  const at = timestamp()
  const fields = differences(fieldsOf(known.card), fieldsOf(next.card))
  const skills = differences(skillsOf(known), skillsOf(next))
  const added = [...fields, ...skills].map(([field, before, after]) => ({
    at,
    field: field.slice(0, 200),
    ...shown('before', before),
    ...shown('after', after),
  }))
  return [...(known.cardChanges ?? []), ...added].slice(-kept)
}

type Named = ReadonlyMap<string, JsonValue>

function differences(before: Named, after: Named): [string, JsonValue | undefined, JsonValue | undefined][] {
  return [...new Set([...before.keys(), ...after.keys()])].flatMap((name) =>
    isDeepStrictEqual(before.get(name), after.get(name)) ? [] : [[name, before.get(name), after.get(name)]],
  )
}

function fieldsOf(card: JsonObject): Named {
  return new Map(Object.entries(card).filter(([name]) => !elsewhere.has(name)))
}

function skillsOf({ skills }: Pick<AgentEntry, 'skills'>): Named {
  return new Map(skills.map((skill) => [`skills.${skill.id}`, skill]))
}

function shown(name: 'before' | 'after', value: JsonValue | undefined): Record<string, JsonValue> {
  return value === undefined || JSON.stringify(value).length > valueMaxChars ? {} : { [name]: value }
}
