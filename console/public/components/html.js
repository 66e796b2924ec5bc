import htm from 'htm'
import { h } from 'preact'

/**
 * Creates virtual elements from a template. Values are texts, never markup.
 *
 * @type {(strings: TemplateStringsArray, ...values: unknown[]) => import('preact').VNode}
 */
export const html = /** @type {any} */ (htm).bind(h)
