import { signal } from '@preact/signals'
import { html } from './html.js'

/** The present time, for relative times. It changes every few seconds while the page is visible. */
export const now = signal(Date.now())
setInterval(() => {
  if (!document.hidden) now.value = Date.now()
}, 5000)
document.addEventListener('visibilitychange', () => {
  now.value = Date.now()
})

/** The first format of a page takes 20 ms, so each is created when it is first used. */
const formats = {
  exact: lazyFormat({ dateStyle: 'medium', timeStyle: 'long' }),
  clock: lazyFormat({ hour: '2-digit', minute: '2-digit', second: '2-digit' }),
  date: lazyFormat({ day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' }),
}

/**
 * @param {Intl.DateTimeFormatOptions} options
 * @returns {(time: number) => string}
 */
function lazyFormat(options) {
  /** @type {Intl.DateTimeFormat | undefined} */
  let format
  return (time) => (format ??= new Intl.DateTimeFormat('en-GB', options)).format(time)
}

/**
 * A time in the reader's zone: how long ago it was, with the exact time as its title.
 *
 * @param {{ at: string | null | undefined, none?: string, exact?: boolean }} props
 */
export function Time({ at, none = '–', exact: isExact = false }) {
  if (at === null || at === undefined) return html`<span class="faint">${none}</span>`
  const time = Date.parse(at)
  if (Number.isNaN(time)) return html`<span class="faint">an unreadable time</span>`
  return html`<time class="nowrap" datetime=${at} title=${formats.exact(time)}>
    ${isExact ? formats.exact(time) : relative(time, now.value)}
  </time>`
}

/**
 * A time of the present day as a clock shows it, optionally with milliseconds.
 *
 * @param {number} time in milliseconds
 * @param {{ ms?: boolean }} [options]
 */
export function clockText(time, { ms = false } = {}) {
  return formats.clock(time) + (ms ? `.${String(Math.floor(time) % 1000).padStart(3, '0')}` : '')
}

/**
 * @param {number} time
 * @param {number} at
 */
export function relative(time, at) {
  const passed = at - time
  const seconds = Math.round(Math.abs(passed) / 1000)
  if (seconds < 5) return 'now'
  const amount = seconds < 60 ? `${Math.floor(seconds / 5) * 5} s` : amountOf(seconds)
  if (seconds > 14 * 86_400) return formats.date(time)
  return passed >= 0 ? `${amount} ago` : `in ${amount}`
}

/** @param {number} seconds */
function amountOf(seconds) {
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h`
  return `${Math.floor(seconds / 86_400)} d`
}

/**
 * A length of time such as `340 ms`, `2.5 s` or `3 min 20 s`.
 *
 * @param {number | null | undefined} ms
 */
export function durationText(ms) {
  if (ms === null || ms === undefined || Number.isNaN(ms)) return '–'
  if (ms < 1) return '0 ms'
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`
  const seconds = Math.round(ms / 1000)
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
  const minutes = Math.round(seconds / 60)
  if (minutes < 1440) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
  return `${Math.floor(minutes / 1440)} d ${Math.floor((minutes % 1440) / 60)} h`
}

/** @param {{ ms: number | null | undefined }} props */
export function Duration({ ms }) {
  return html`<span class=${ms === null || ms === undefined ? 'faint nowrap' : 'nowrap'}>${durationText(ms)}</span>`
}
