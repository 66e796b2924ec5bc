import { createHash } from 'node:crypto'
import type { Tool } from '@modelcontextprotocol/server'
import type { ListedSkill } from '@parley/wire/codecs/parley/skills'
import { ParleyError } from '@parley/wire/errors'
import { cleanLine, cleanText, clipped } from '@parley/wire/model/clean-text'
import type { AgentDirectory } from '../registry/agent-policies.ts'
import type { AgentEntry } from '../registry/entry.ts'
import { gatewayToolList } from './gateway-tools.ts'
import { inputShapeOf } from './input-schema.ts'
import { partsOfName, toolNameOf } from './tool-names.ts'

/** The tool of one skill of an agent. */
export interface SkillTool {
  definition: Tool
  slug: string
  agentName: string
  skillId: string
  /** Whether the arguments are the data of the skill instead of a text. */
  isStructured: boolean
}

export interface ToolPage {
  tools: readonly Tool[]
  /** The tools as JSON. It is kept until the tools change. */
  json: Buffer
  nextCursor?: string
}

/** The tools that one caller sees at one address. */
interface ToolView {
  /** The revision of the directory from which the view was made. */
  revision: string
  tools: readonly SkillTool[]
  byName: ReadonlyMap<string, SkillTool>
  /** The pages by the index of their first tool. */
  pages: Map<number, Pick<ToolPage, 'tools' | 'json'>>
}

/** Many hosts read only the first page. */
const pageTools = 250
const descriptionMaxChars = 2048
const viewsPerDirectory = 32
const pagesMax = 16

/** The tools of the registered agents: one per skill. */
export class ToolCatalog {
  /** The tools of each agent by its list of skills, at the gateway's address and at the agent's address. */
  readonly #ofSkills = new WeakMap<AgentEntry['skills'], Map<string, readonly SkillTool[]>>()
  readonly #views = new WeakMap<AgentDirectory, Map<string, ToolView>>()

  /**
   * Returns the tools of all agents that the caller may use, or of one agent, sorted by name.
   * @param agent the slug of the agent that the address names; undefined at the gateway's address
   * @throws ParleyError InvalidParams for a cursor of another caller or address
   */
  page(directory: AgentDirectory, agent: string | undefined, callerId: string, cursor?: string): ToolPage {
    const view = this.#view(directory, agent)
    const after = cursor === undefined ? undefined : nameIn(cursor, callerId, agent)
    const start = after === undefined ? 0 : firstAfter(view.tools, after)
    const last = view.tools[start + pageTools - 1]
    return {
      ...pageAt(view, start, after === undefined ? gatewayToolList(agent) : []),
      ...(last !== undefined &&
        start + pageTools < view.tools.length && {
          nextCursor: cursorOf(last.definition.name, callerId, agent),
        }),
    }
  }

  find(directory: AgentDirectory, agent: string | undefined, name: string): SkillTool | undefined {
    const slug = agent ?? partsOfName(name)?.slug
    const entry = slug === undefined ? undefined : directory.bySlug(slug)
    const found =
      entry?.admitted === true
        ? this.#toolsOf(entry, agent).find(({ definition }) => definition.name === name)
        : undefined
    // The slug in a shortened name may be incomplete.
    return found ?? this.#view(directory, agent).byName.get(name)
  }

  #view(directory: AgentDirectory, agent: string | undefined): ToolView {
    const { revision } = directory
    const views = this.#views.get(directory) ?? new Map<string, ToolView>()
    this.#views.set(directory, views)
    const key = agent ?? ''
    const known = views.get(key)
    if (known?.revision === revision) return known
    const entries = agent === undefined ? directory.admitted() : admittedOnly(directory.bySlug(agent))
    const tools = entries.flatMap((entry) => this.#toolsOf(entry, agent)).toSorted(byName)
    const byToolName = new Map(tools.map((tool) => [tool.definition.name, tool]))
    const view: ToolView = { revision, tools, byName: byToolName, pages: new Map() }
    const [oldest] = views.keys()
    if (views.size >= viewsPerDirectory && oldest !== undefined) views.delete(oldest)
    views.set(key, view)
    return view
  }

  #toolsOf(entry: AgentEntry, agent: string | undefined): readonly SkillTool[] {
    const ofSkills = this.#ofSkills.get(entry.skills) ?? new Map<string, readonly SkillTool[]>()
    this.#ofSkills.set(entry.skills, ofSkills)
    const key = JSON.stringify([agent === undefined, entry.slug, entry.name])
    const known = ofSkills.get(key)
    if (known !== undefined) return known
    const tools = new Map<string, SkillTool>()
    for (const skill of entry.skills) {
      const tool = toolOf(entry, skill, agent)
      if (!tools.has(tool.definition.name)) tools.set(tool.definition.name, tool)
    }
    if (ofSkills.size >= 4) ofSkills.clear()
    ofSkills.set(key, [...tools.values()])
    return [...tools.values()]
  }
}

/** @param before the tools in front of the first page */
function pageAt({ tools, pages }: ToolView, start: number, before: readonly Tool[]) {
  // A first page with a cursor does not begin with the tools of the gateway.
  const key = before.length > 0 ? -1 : start
  const known = pages.get(key)
  if (known !== undefined) return known
  const definitions = tools.slice(start, start + pageTools).map(({ definition }) => definition)
  const all = [...before, ...definitions]
  const page = { tools: all, json: Buffer.from(JSON.stringify(all)) }
  if (pages.size >= pagesMax) pages.clear()
  pages.set(key, page)
  return page
}

function toolOf({ slug, name }: AgentEntry, skill: ListedSkill, agent: string | undefined): SkillTool {
  const agentName = cleanLine(name, 128) || slug
  const { schema, isStructured } = inputShapeOf(skill['input_schema'])
  const title = cleanLine(skill.name, 128)
  const about = cleanText(skill.description).trim()
  return {
    definition: {
      name: toolNameOf(agent === undefined ? slug : undefined, skill.id),
      title: title === '' ? slug : title,
      description: clipped(`From agent ${agentName}: ${about || title}`, descriptionMaxChars),
      inputSchema: schema,
      annotations: { openWorldHint: true },
      _meta: { 'parley/agent': slug, 'parley/skill': cleanLine(skill.id, 512) },
    },
    slug,
    agentName,
    skillId: skill.id,
    isStructured,
  }
}

const admittedOnly = (entry: AgentEntry | undefined) => (entry?.admitted === true ? [entry] : [])

const byName = (one: SkillTool, other: SkillTool): number =>
  one.definition.name < other.definition.name ? -1 : 1

/** Returns the index of the first tool after the name, which may have been removed. */
function firstAfter(tools: readonly SkillTool[], name: string): number {
  const at = tools.findIndex(({ definition }) => definition.name > name)
  return at === -1 ? tools.length : at
}

const cursorOf = (name: string, callerId: string, agent: string | undefined): string =>
  Buffer.from(`${ownerTag(callerId, agent)}${name}`).toString('base64url')

/** A cursor names a position in the list of its caller and contains nothing secret. */
function nameIn(cursor: string, callerId: string, agent: string | undefined): string {
  const text = Buffer.from(cursor, 'base64url').toString()
  const tag = ownerTag(callerId, agent)
  if (text.startsWith(tag) && text.length > tag.length) return text.slice(tag.length)
  throw new ParleyError('InvalidParams', {
    message: 'The cursor is not from your tools/list: request the list without a cursor',
    data: { reason: 'cursor' },
  })
}

const ownerTag = (callerId: string, agent: string | undefined): string =>
  createHash('sha256')
    .update(JSON.stringify([callerId, agent ?? null]))
    .digest('base64url')
    .slice(0, 16)
