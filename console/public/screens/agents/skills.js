import { JsonView } from '../../components/code.js'
import { html } from '../../components/html.js'
import { Card, Facts } from '../../components/page.js'
import { EmptyState } from '../../components/states.js'
import { Text } from '../../components/text.js'
import { durationText } from '../../components/time.js'
import { hrefOf } from '../../router.js'

const skillsMax = 200

/**
 * The skills of an agent with their examples and the schema of their input.
 * @param {{ agent: import('./agent.js').Agent }} props
 */
export function Skills({ agent: { slug, skills } }) {
  const count = html`<span class="count">${skills.length}</span>`
  return html`<${Card} title="Skills" id="skills" actions=${count}>
    ${
      skills.length === 0
        ? html`<${EmptyState} title="The agent states no skills" icon="agents">It receives work only by its name.<//>`
        : html`<div class="stack">
            ${skills.slice(0, skillsMax).map((skill) => html`<${SkillDetails} key=${skill.id} skill=${skill} slug=${slug} open=${skills.length === 1} />`)}
            ${skills.length > skillsMax && html`<p class="muted">${skills.length - skillsMax} more skills are in the card below.</p>`}
          </div>`
    }
  <//>`
}

/** @param {{ skill: import('./agent.js').Skill, slug: string, open: boolean }} props */
function SkillDetails({ skill, slug, open }) {
  const { id, name, description, tags = [], examples = [] } = skill
  const schema = skill['input_schema']
  return html`<details class="disclosure" open=${open}>
    <summary><strong><${Text} value=${name} max=${200} /></strong> <code class="small muted break">${id}</code></summary>
    <div class="stack-2 disclosure-body">
      <p class="muted"><${Text} value=${description} none="No description." max=${3000} /></p>
      ${tags.length > 0 && html`<div class="row">${texts(tags).map((tag) => html`<span key=${tag} class="tag"><${Text} value=${tag} max=${40} /></span>`)}</div>`}
      <${Facts} facts=${[
        ['Input', texts(skill['input_modes']).join(', ')],
        ['Output', texts(skill['output_modes']).join(', ')],
        [
          'Declared time',
          typeof skill['performance']?.avg_processing_time_ms === 'number'
            ? durationText(skill['performance'].avg_processing_time_ms)
            : undefined,
        ],
      ]} />
      ${texts(examples).length > 0 && html`<${Examples} examples=${texts(examples)} slug=${slug} />`}
      ${schema !== undefined && html`<h3>Input schema</h3><${JsonView} value=${schema} open=${2} />`}
    </div>
  </details>`
}

/** @param {{ examples: string[], slug: string }} props */
function Examples({ examples, slug }) {
  return html`<h3>Examples</h3>
    <ul>
      ${examples.slice(0, 12).map(
        (example) => html`<li key=${example}>
          <a href=${hrefOf('/console/try', { agent: slug, text: example.slice(0, 1000) })}><${Text} value=${example} max=${300} /></a>
        </li>`,
      )}
    </ul>`
}

/**
 * @param {unknown} value
 * @returns {string[]}
 */
const texts = (value) =>
  Array.isArray(value) ? value.filter((text) => typeof text === 'string').slice(0, 50) : []
