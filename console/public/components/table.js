import { hrefOf, route } from '../router.js'
import { html } from './html.js'
import { Icon } from './icon.js'

/**
 * A column. `cell` returns the content. `kind` is `fill` for the column that takes the free width and shortens its text,
 * `number` for figures, `narrow` for content that keeps its width. `label` is false if the cell needs no label on a phone.
 *
 * @template R
 * @typedef {{ title: string, cell: (row: R) => unknown, kind?: 'fill' | 'number' | 'narrow' | 'max', label?: boolean,
 *   wideOnly?: boolean }} Column
 */

/**
 * A table. On a phone it becomes a list of blocks.
 *
 * @template R
 * @param {{ caption: string, columns: Column<R>[], rows: R[], rowKey: (row: R) => string, linked?: boolean,
 *   isCurrent?: (row: R) => boolean }} props with `linked`, one cell of each row contains a link of the class `row-link`
 */
export function Table({ caption, columns, rows, rowKey, linked = false, isCurrent }) {
  return html`<div class="table-wrap" role="group" aria-label=${caption} tabindex="0">
    <table class="responsive">
      <caption class="hidden-visually">${caption}</caption>
      <thead>
        <tr>
          ${columns.map((column) => html`<th key=${column.title} scope="col" class=${classOf(column)}>${column.title}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          (row) => html`<tr key=${rowKey(row)} class=${rowClass(linked, isCurrent?.(row))}>
            ${columns.map(
              (
                column,
              ) => html`<td key=${column.title} class=${classOf(column)} data-label=${column.label === false ? undefined : column.title}>
                ${column.cell(row)}
              </td>`,
            )}
          </tr>`,
        )}
      </tbody>
    </table>
  </div>`
}

/** @param {{ kind?: string, wideOnly?: boolean }} column */
function classOf({ kind, wideOnly }) {
  return [kind, wideOnly && 'wide-only'].filter(Boolean).join(' ') || undefined
}

/**
 * @param {boolean} linked
 * @param {boolean | undefined} current
 */
function rowClass(linked, current) {
  return [linked && 'linked', current && 'current'].filter(Boolean).join(' ') || undefined
}

/**
 * The pages of a list with keyset paging. The cursor is in the URL, so the history leads back to earlier pages.
 *
 * @param {{ cursor: string | null | undefined, shown: number, noun?: string, order?: 'time' | 'name',
 *   children?: import('preact').ComponentChildren }} props `cursor` of the next page
 */
export function Pager({ cursor, shown, noun = 'entries', order = 'time', children }) {
  const [start, further] = order === 'time' ? ['Newest', 'Older'] : ['First', 'Next']
  const { path, query } = route.value
  const isFirst = !query.has('cursor')
  if (isFirst && !cursor) return html`<div class="pager"><span>${shown} ${noun}</span>${children}</div>`
  const first = new URLSearchParams(query)
  first.delete('cursor')
  const next = new URLSearchParams(query)
  next.set('cursor', cursor ?? '')
  return html`<nav class="pager" aria-label="Pages">
    <span>${shown} ${noun} on this page</span>${children}
    <span class="row end">
      ${!isFirst && html`<a class="button" href=${hrefOf(path, first)}>${start}</a>`}
      ${!isFirst && html`<button type="button" class="button" onClick=${() => history.back()}><${Icon} name="left" />Back</button>`}
      ${cursor ? html`<a class="button" href=${hrefOf(path, next)}>${further}<${Icon} name="right" /></a>` : html`<span>This is the last page.</span>`}
    </span>
  </nav>`
}
