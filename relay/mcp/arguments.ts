import { cleanLine } from '@parley/wire/model/clean-text'
import { isJsonObject, jsonObjectOf } from '@parley/wire/model/json-text'
import type { JsonObject, JsonValue } from '@parley/wire/model/task'
import { propertiesOf } from './tools.ts'

/** The values for a schema: complete, incomplete with the names of the missing fields, or with faults. */
export type Arguments =
  | { values: JsonObject }
  | { values: JsonObject; missing: string[] }
  | { values: JsonObject; faults: string[] }

/**
 * Builds the values for a schema from the data and the text of messages. Only the fields of the object are checked: the server checks the
 * rest, and a hostile schema cannot cost more than its size.
 */
export function argumentsFor(schema: JsonObject, given: { data: JsonObject; text: string }): Arguments {
  const properties = propertiesOf(schema)
  const values = withText(schema, { ...jsonIn(given.text, properties), ...given.data }, given.text)
  const faults = Object.entries(values).flatMap(([name, value]) => {
    const property = properties[name]
    if (property === undefined)
      return schema['additionalProperties'] === false ? [`${shown(name)} is not a field`] : []
    return fits(property, value) ? [] : [`${shown(name)} must be ${kindOf(property)}`]
  })
  if (faults.length > 0) return { values, faults: faults.slice(0, 20) }
  const missing = requiredOf(schema).filter((name) => !(name in values))
  return missing.length > 0 ? { values, missing } : { values }
}

/** Describes fields in one line each: the name, the kind of value and the description. */
export function fieldsText(schema: JsonObject, names: readonly string[]): string {
  const properties = propertiesOf(schema)
  const lines = names.slice(0, 50).map((name) => {
    const property = properties[name] ?? {}
    const { description } = property
    const about = typeof description === 'string' ? `: ${cleanLine(description, 300)}` : ''
    return `- ${shown(name)} (${kindOf(property)})${about}`
  })
  return lines.join('\n')
}

/** Returns a schema with these fields only. */
export function schemaOf(schema: JsonObject, names: readonly string[]): JsonObject {
  const properties = propertiesOf(schema)
  const kept = names.flatMap((name) =>
    properties[name] === undefined ? [] : [[name, properties[name]] as const],
  )
  const shared = Object.fromEntries(
    Object.entries(schema).filter(([key]) => key === '$defs' || key === 'definitions'),
  )
  return { type: 'object', properties: Object.fromEntries(kept), required: [...names], ...shared }
}

export function requiredOf({ required }: JsonObject): string[] {
  if (!Array.isArray(required)) return []
  return [...new Set(required.filter((name) => typeof name === 'string'))].slice(0, 1000)
}

const shown = (name: string) => cleanLine(name, 128)

/** A text that is a JSON object is data, and so are lines such as `name: value` with names of fields. */
function jsonIn(text: string, properties: Record<string, JsonObject>): JsonObject {
  const trimmed = text.trim()
  if (trimmed.startsWith('{')) return jsonObjectOf(trimmed) ?? {}
  const pairs = trimmed.split(/[\n;]/).map(pairIn)
  if (!pairs.every(([name, value]) => Object.hasOwn(properties, name) && value !== '')) return {}
  return Object.fromEntries(
    pairs.flatMap(([name, value]) => {
      const read = valueIn(value, properties[name] ?? {})
      return read === undefined ? [] : [[name, read] as const]
    }),
  )
}

/** Splits at the first colon or equals sign. The texts of callers may be long, so there is no expression that could backtrack. */
function pairIn(line: string): [name: string, value: string] {
  const at = line.search(/[:=]/)
  return at === -1 ? ['', ''] : [line.slice(0, at).trim(), line.slice(at + 1).trim()]
}

/** Uses the text as the value of the only field that is required and missing, or of the only field. */
function withText(schema: JsonObject, data: JsonObject, text: string): JsonObject {
  const properties = propertiesOf(schema)
  const names = Object.keys(properties)
  const trimmed = text.trim()
  if (trimmed === '' || Object.keys(jsonIn(text, properties)).length > 0) return data
  const missing = requiredOf(schema).filter((name) => !(name in data))
  const [only] = missing.length > 0 ? missing : names.filter((name) => !(name in data))
  if (only === undefined || missing.length > 1 || (missing.length === 0 && names.length > 1)) return data
  const value = valueIn(trimmed, properties[only] ?? {})
  return value === undefined ? data : { ...data, [only]: value }
}

/** Reads a text as a value of a property; undefined if it is none. */
function valueIn(text: string, property: JsonObject): JsonValue | undefined {
  const options = optionsOf(property)
  if (options !== undefined) return options.find((one) => String(one).toLowerCase() === text.toLowerCase())
  const types = typesOf(property)
  if (types.length === 0 || types.includes('string')) return text
  if (
    (types.includes('number') || types.includes('integer')) &&
    /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i.test(text)
  ) {
    const value = Number(text)
    if (types.includes('number') || Number.isInteger(value)) return value
  }
  if (types.includes('boolean') && /^(true|yes|false|no)$/i.test(text)) return /^(true|yes)$/i.test(text)
  if (types.includes('array') && text.startsWith('[')) return arrayIn(text)
  return undefined
}

function arrayIn(text: string): JsonValue | undefined {
  const value = jsonObjectOf(`{"value":${text}}`)?.['value']
  return Array.isArray(value) ? value : undefined
}

function fits(property: JsonObject, value: JsonValue): boolean {
  const options = optionsOf(property)
  if (options !== undefined && !options.includes(typeof value === 'object' ? null : value)) return false
  const types = typesOf(property)
  return types.length === 0 || types.some((type) => isOf(type, value))
}

function isOf(type: string, value: JsonValue): boolean {
  if (type === 'null') return value === null
  if (type === 'array') return Array.isArray(value)
  if (type === 'object') return isJsonObject(value)
  if (type === 'integer') return Number.isInteger(value)
  return typeof value === type
}

function typesOf({ type }: JsonObject): string[] {
  const known = ['string', 'number', 'integer', 'boolean', 'array', 'object', 'null']
  const given = Array.isArray(type) ? type : [type]
  const types = given.filter((one) => typeof one === 'string')
  return types.every((one) => known.includes(one)) ? types : []
}

/** The values of an enumeration; undefined if there is none, or one with objects. */
function optionsOf({ enum: all, const: only }: JsonObject): (string | number | boolean | null)[] | undefined {
  const given = Array.isArray(all) ? all : only === undefined ? undefined : [only]
  const simple = given?.filter((one) => typeof one !== 'object' || one === null)
  return simple?.length === given?.length ? simple : undefined
}

function kindOf(property: JsonObject): string {
  const options = optionsOf(property)
  if (options !== undefined)
    return `one of ${options
      .slice(0, 20)
      .map((one) => cleanLine(String(one), 60))
      .join(', ')}`
  return typesOf(property).join(' or ') || 'a value'
}
