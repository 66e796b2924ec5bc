import { html } from './html.js'

/** Icons of 16 by 16 units, drawn with lines. */
const paths = {
  overview: 'M2 13.5V9.5M6 13.5v-9M10 13.5v-6M14 13.5V2.5',
  tasks: 'M5.5 4h8M5.5 8h8M5.5 12h8M2.25 4h.5M2.25 8h.5M2.25 12h.5',
  decisions: 'M8 14V9M8 9 3.5 4.5M8 9l4.5-4.5M3.5 7.5v-3h3M12.5 7.5v-3h-3',
  agents: 'M3 6.5h10v6H3zM8 6.5V3.5M8 2.75h.01M6 9.25h.01M10 9.25h.01M1.5 8.5v2M14.5 8.5v2',
  chat: 'M2.5 3.5h11v7.5H7l-3 2.5V11H2.5z',
  waiting: 'M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2M8 5v3.25L10 10',
  webhooks: 'M13.5 2.5 7 9M13.5 2.5 9.5 13.5 7 9 2.5 6.5z',
  money: 'M2 4h12v8H2zM8 9.75a1.75 1.75 0 1 0 0-3.5 1.75 1.75 0 0 0 0 3.5M4 8h.01M12 8h.01',
  clients: 'M10 6a3 3 0 1 1-6 0 3 3 0 0 1 6 0M2 14c.5-2.75 2.5-4 5-4s4.5 1.25 5 4M12 4v3M13.5 5.5h-3',
  audit: 'M4 2h6l2.5 2.5V14H4zM6.5 7h3.5M6.5 9.5h3.5M6.5 12h2',
  sessions: 'M2 3h12v8H2zM5.5 14h5M8 11v3',
  more: 'M3.5 8h.01M8 8h.01M12.5 8h.01',
  menu: 'M2 4h12M2 8h12M2 12h12',
  close: 'm4 4 8 8M12 4l-8 8',
  check: 'm3 8.5 3.25 3.25L13 5',
  cross: 'm4.5 4.5 7 7M11.5 4.5l-7 7',
  dot: 'M8 7.5a.5.5 0 1 1 0 1 .5.5 0 0 1 0-1',
  circle: 'M8 3a5 5 0 1 1 0 10A5 5 0 0 1 8 3',
  half: 'M8 3a5 5 0 1 1 0 10A5 5 0 0 1 8 3M8 3v10M8 5.5h2M8 8h2.75M8 10.5h2',
  question: 'M5.75 6a2.25 2.25 0 1 1 3.25 2c-.75.4-1 .9-1 1.5M8 12.25h.01',
  lock: 'M3.5 7.5h9V14h-9zM5.5 7.5V5a2.5 2.5 0 0 1 5 0v2.5',
  slash: 'M8 3a5 5 0 1 1 0 10A5 5 0 0 1 8 3M4.5 11.5l7-7',
  alert: 'M8 2 1.5 13.5h13zM8 6.5v3M8 11.5h.01',
  info: 'M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2M8 7.5V11M8 5h.01',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  right: 'm6 3.5 4.5 4.5L6 12.5',
  left: 'M10 3.5 5.5 8l4.5 4.5',
  up: 'm3.5 10 4.5-4.5L12.5 10',
  down: 'm3.5 6 4.5 4.5L12.5 6',
  reload: 'M13 8a5 5 0 1 1-1.5-3.5L13 6M13 2.5V6H9.5',
  sun: 'M8 5.25a2.75 2.75 0 1 1 0 5.5 2.75 2.75 0 0 1 0-5.5M8 1.5v1M8 13.5v1M1.5 8h1M13.5 8h1M3.4 3.4l.7.7M11.9 11.9l.7.7M12.6 3.4l-.7.7M4.1 11.9l-.7.7',
  moon: 'M13 9.5A5.5 5.5 0 0 1 6.5 3a5.5 5.5 0 1 0 6.5 6.5',
  screen: 'M2 3h12v8H2zM6 14h4',
  out: 'M6 2.5H3v11h3M7 8h6.5M11 5.5 13.5 8 11 10.5',
  search: 'M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9M10.5 10.5l3 3',
  external: 'M9 3h4v4M13 3 7.5 8.5M11 9.5V13H3V5h3.5',
  play: 'M4.5 3v10l8-5z',
  stop: 'M4 4h8v8H4z',
  pause: 'M5.5 3.5v9M10.5 3.5v9',
  file: 'M4 2h5.5L12.5 5v9H4zM9.5 2v3h3',
  send: 'M2.5 8h10M8.5 4l4 4-4 4',
  plus: 'M8 3v10M3 8h10',
  keyboard: 'M1.5 4h13v8h-13zM4 6.5h.01M6.5 6.5h.01M9 6.5h.01M11.5 6.5h.01M5 9.5h6',
  shield: 'M8 2 3 4v4c0 3 2 5 5 6 3-1 5-3 5-6V4zM6 8l1.5 1.5L10.5 6.5',
  link: 'M6.5 9.5l3-3M7 4.5l1.25-1.25a2.65 2.65 0 0 1 3.75 0l.75.75a2.65 2.65 0 0 1 0 3.75L11.5 9M4.5 7 3.25 8.25a2.65 2.65 0 0 0 0 3.75l.75.75a2.65 2.65 0 0 0 3.75 0L9 11.5',
}

/** @typedef {keyof typeof paths} IconName */

/**
 * A decorative icon: the text next to it has the same meaning. `label` names it where there is no text.
 *
 * @param {{ name: IconName, label?: string }} props
 */
export function Icon({ name, label }) {
  const hidden = label === undefined
  return html`<svg class="icon" viewBox="0 0 16 16" role=${hidden ? undefined : 'img'} aria-hidden=${hidden} aria-label=${label}>
    <path d=${paths[name]} />
  </svg>`
}
