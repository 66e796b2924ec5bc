import { randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { pdfFrameApi } from './descriptions.ts'

/** The origin of the frame is opaque, so its module and the library need a permission to be read by another origin. */
export const readableByFrames = { 'access-control-allow-origin': '*' }

/**
 * Adds the page that draws a PDF document, for a sandboxed frame of the console (docs/decisions/0049-pdf-in-a-sandbox.md).
 * The page receives the document as a message of the console. Its policy allows its module with the library that it imports,
 * and no request.
 */
export function addPdfFrame(scope: FastifyInstance): void {
  scope.get('/console/pdf-frame', { config: { api: pdfFrameApi } }, (_request, reply) => {
    const nonce = randomBytes(16).toString('base64')
    return reply.headers(headersOf(nonce)).type('text/html; charset=utf-8').send(pageOf(nonce))
  })
}

function headersOf(nonce: string): Record<string, string> {
  const policy = [
    'sandbox allow-scripts',
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src 'nonce-${nonce}'`,
    "frame-ancestors 'self'",
    "base-uri 'none'",
    "form-action 'none'",
  ]
  return {
    'content-security-policy': policy.join('; '),
    'cross-origin-resource-policy': 'same-origin',
    'cache-control': 'no-store',
  }
}

const pageOf = (nonce: string): string => `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>PDF document</title>
    <style nonce="${nonce}">${style}</style>
    <script type="importmap" nonce="${nonce}">{"imports":{"unpdf/pdfjs":"/console/vendor/unpdf/dist/pdfjs.mjs"}}</script>
    <script type="module" nonce="${nonce}" src="/console/assets/pdf/pdf-viewer.js"></script>
  </head>
  <body>
    <div id="document" role="group" tabindex="0" aria-label="Pages"><p role="status">Reading the document …</p></div>
  </body>
</html>
`

/** The part about the text layer follows pdf_viewer.css of PDF.js: transparent text at its place on the page. */
const style = `
html { height: 100%; background: light-dark(#e9ecf1, #0a0c0f); color: light-dark(#161a22, #e8ebf1); font: 0.875rem/1.5 system-ui, sans-serif; }
body { margin: 0; height: 100%; }
#document { box-sizing: border-box; height: 100%; overflow: auto; padding: 0.75rem; }
p { margin: 0 0 0.5rem; }
.page { position: relative; max-width: 60rem; margin: 0 auto 0.75rem; background: #fff; box-shadow: 0 1px 3px rgb(0 0 0 / 0.3); overflow: hidden; }
.page canvas { display: block; width: 100%; }
.more { display: block; margin: 0 auto 0.75rem; padding: 0.4rem 0.9rem; font: inherit; color: inherit; background: light-dark(#fff, #1b1f27);
  border: 1px solid light-dark(#868e9d, #6b7484); border-radius: 6px; cursor: pointer; }
.more:focus-visible, #document:focus-visible { outline: 2px solid light-dark(#4453d6, #98a5ff); outline-offset: -2px; }
.hiddenCanvasElement { position: absolute; top: 0; left: 0; width: 0; height: 0; display: none; }
.textLayer { position: absolute; inset: 0; overflow: clip; line-height: 1; text-align: initial; transform-origin: 0 0;
  --min-font-size: 1; --text-scale-factor: calc(var(--total-scale-factor) * var(--min-font-size)); --min-font-size-inv: calc(1 / var(--min-font-size)); }
.textLayer span, .textLayer br { color: transparent; position: absolute; white-space: pre; cursor: text; transform-origin: 0% 0%; }
.textLayer > :not(.markedContent), .textLayer .markedContent span:not(.markedContent) { --font-height: 0; --scale-x: 1; --rotate: 0deg;
  font-size: calc(var(--text-scale-factor) * var(--font-height));
  transform: rotate(var(--rotate)) scaleX(var(--scale-x)) scale(var(--min-font-size-inv)); }
.textLayer .markedContent { display: contents; }
.textLayer ::selection { background: rgb(68 83 214 / 0.3); }
`
