import { useEffect } from 'preact/hooks'
import { CopyButton } from './copy-button.js'
import { html } from './html.js'
import { plainText } from './text.js'

/**
 * A screen: its heading, which receives the focus when the reader arrives, the command that does the same, and its content.
 *
 * @param {{
 *   title: import('preact').ComponentChildren,
 *   name?: string,
 *   lead?: import('preact').ComponentChildren,
 *   crumbs?: { href: string, text: string }[],
 *   actions?: import('preact').ComponentChildren,
 *   command?: string | string[],
 *   children?: import('preact').ComponentChildren,
 * }} props `name` is the title of the document where `title` is not a text
 */
export function Page({ title, name, lead, crumbs, actions, command, children }) {
  const documentTitle = plainText(name ?? (typeof title === 'string' ? title : ''))
  useEffect(() => {
    document.title = documentTitle === '' ? 'Parley console' : `${documentTitle} · Parley console`
  }, [documentTitle])
  const commands = command === undefined ? [] : [command].flat()
  return html`<div class="page">
    <header class="page-header">
      ${
        crumbs &&
        html`<nav class="crumbs" aria-label="Breadcrumb">
        ${crumbs.map(({ href, text }) => html`<a href=${href} key=${href}>${text}</a><span aria-hidden="true"> / </span>`)}
      </nav>`
      }
      <div class="row-apart">
        <h1 id="page-title" tabindex="-1">${title}</h1>
        <div class="page-actions">
          ${commands.map((one) => html`<${CommandHint} key=${one} command=${one} />`)}${actions}
        </div>
      </div>
      ${lead && html`<div class="lead">${lead}</div>`}
    </header>
    ${children}
  </div>`
}

/**
 * The command of the CLI that does the same.
 *
 * @param {{ command: string }} props such as `npx parley tasks --waiting`
 */
export function CommandHint({ command }) {
  return html`<span class="command">
    <span title="The same on the command line">CLI</span><code tabindex="0">${plainText(command)}</code>
    <${CopyButton} text=${command} label=${`Copy the command ${plainText(command)}`} />
  </span>`
}

/**
 * A framed part of a screen.
 *
 * @param {{ title?: import('preact').ComponentChildren, id?: string, actions?: import('preact').ComponentChildren,
 *   footer?: import('preact').ComponentChildren, padded?: boolean, children?: import('preact').ComponentChildren }} props
 *   `padded` is false for tables, which reach the edges
 */
export function Card({ title, id, actions, footer, padded = true, children }) {
  const heading = title !== undefined && id !== undefined ? `${id}-title` : undefined
  return html`<section class="card" id=${id} aria-labelledby=${heading}>
    ${title !== undefined && html`<header><h2 id=${heading}>${title}</h2>${actions}</header>`}
    ${padded ? html`<div class="card-body">${children}</div>` : children}
    ${footer && html`<footer>${footer}</footer>`}
  </section>`
}

/**
 * Pairs of a name and a value. Pairs without a value are left out.
 *
 * @param {{ facts: [string, unknown][] }} props
 */
export function Facts({ facts }) {
  const known = facts.filter(([, value]) => value !== undefined && value !== null && value !== '')
  return html`<dl class="facts">
    ${known.map(([name, value]) => html`<dt key=${name}>${name}</dt><dd>${value}</dd>`)}
  </dl>`
}

/**
 * A share from 0 to 1. The figure next to it says the same in words.
 *
 * @param {{ share: number, tone?: import('../../types/answers.js').Tone }} props
 */
export function Bar({ share, tone = 'info' }) {
  const width = `${Math.round(Math.min(1, Math.max(0, share || 0)) * 1000) / 10}%`
  return html`<span class="bar" data-tone=${tone} aria-hidden="true"><span style=${{ width }}></span></span>`
}
