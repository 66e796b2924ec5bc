import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type Html, html, Html as Markup } from './html.ts'

const style = readFileSync(new URL('./capture-page.css', import.meta.url), 'utf8')
// The function wrapper keeps the script's names out of the global scope, which wallets extend with scripts.
const script = `(()=>{${readFileSync(new URL('./capture-script.js', import.meta.url), 'utf8')}})()`

const hashOf = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** Allows only the page's own content. */
const policy = [
  "default-src 'none'",
  `script-src ${hashOf(script)}`,
  `style-src ${hashOf(style)}`,
  "connect-src 'self'",
  "form-action 'self'",
  'img-src data:',
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ')

export const capturePageHeaders = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': policy,
  'cache-control': 'no-store',
  'x-robots-tag': 'noindex',
}

export interface CaptureContent {
  title: string
  main: Html
  /** Default: how a signed payment works. */
  footer?: string | undefined
  /** Seconds after which a browser without scripts reloads the page. */
  refreshSeconds?: number | undefined
}

const signedPayment = 'Payments use x402: your wallet signs a single transfer of exactly this amount.'

/** Renders the page. */
export function capturePage(page: CaptureContent): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${page.title}</title>
<link rel="icon" href="data:,">
${page.refreshSeconds !== undefined && html`<noscript><meta http-equiv="refresh" content="${page.refreshSeconds}"></noscript>`}
<style>${new Markup(style)}</style>
</head>
<body>
${page.main}
<footer><p>${page.footer ?? signedPayment}</p></footer>
<script>${new Markup(script)}</script>
</body>
</html>
`.text
}
