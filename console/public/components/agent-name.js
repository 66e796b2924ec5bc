import { isOperator } from '../session.js'
import { html } from './html.js'
import { Text } from './text.js'

/**
 * The slug of an agent. Operators can open its page.
 *
 * @param {{ slug: string | null | undefined }} props
 */
export function AgentName({ slug }) {
  if (slug === null || slug === undefined || !isOperator.value)
    return html`<${Text} value=${slug} max=${80} />`
  return html`<a href=${`/console/agents/${encodeURIComponent(slug)}`}><${Text} value=${slug} max=${80} /></a>`
}
