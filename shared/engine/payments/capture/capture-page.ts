import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type Html, html, Html as Markup } from './html.ts'

const style = readFileSync(new URL('./capture-page.css', import.meta.url), 'utf8')
// In a function of its own: nothing of it is global in a page where wallets put their scripts.
const script = `(()=>{${readFileSync(new URL('./capture-script.js', import.meta.url), 'utf8')}})()`

const hashOf = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** Nothing runs, and nothing is asked, but what this page holds itself. */
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

/** A whole page. @param again seconds after which a browser without script asks again */
export function capturePage(page: { title: string; main: Html; again?: number | undefined }): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${page.title}</title>
<link rel="icon" href="data:,">
${page.again !== undefined && html`<noscript><meta http-equiv="refresh" content="${page.again}"></noscript>`}
<style>${new Markup(style)}</style>
</head>
<body>
${page.main}
<footer><p>Payments here follow x402: your wallet signs one transfer of exactly this amount, and nothing else.</p></footer>
<script>${new Markup(script)}</script>
</body>
</html>
`.text
}
