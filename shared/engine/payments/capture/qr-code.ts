import { encode } from 'uqr'
import { type Html, html } from './html.ts'

/** Longer texts make codes that phones do not read reliably. */
const textMaxChars = 600
/** The empty border that readers require, in modules. */
const border = 4

/** Renders a QR code as SVG, or returns undefined for a text that is too long. */
export function qrCode(text: string, label: string): Html | undefined {
  if (text.length > textMaxChars) return undefined
  const { data, size } = encode(text, { ecc: 'M', border })
  const runs = data.flatMap((row, y) =>
    [...row.map(Number).join('').matchAll(/1+/g)].map(
      ({ 0: run, index }) => `M${index} ${y}h${run.length}v1h-${run.length}z`,
    ),
  )
  return html`<svg class="qr" role="img" aria-label="${label}" viewBox="0 0 ${size} ${size}" shape-rendering="crispEdges"><rect width="${size}" height="${size}" fill="#ffffff"/><path d="${runs.join('')}" fill="#000000"/></svg>`
}
