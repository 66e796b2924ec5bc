import { createHash } from 'node:crypto'

/** Safe markup, which only the `html` tag creates. */
class Markup {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** Builds markup and escapes every value that this tag did not create. */
function html(parts: TemplateStringsArray, ...values: (string | Markup | Markup[])[]): Markup {
  return new Markup(parts.map((part, index) => part + render(values[index] ?? '')).join(''))
}

function render(value: string | Markup | Markup[]): string {
  if (value instanceof Markup) return value.text
  return Array.isArray(value) ? value.map(render).join('') : escape(value)
}

function escape(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

const style = `body{font:16px/1.5 system-ui,sans-serif;max-width:32rem;margin:10vh auto;padding:0 1rem;color:#1b1b1f;background:#fafafa}
h1{font-size:1.4rem}code{overflow-wrap:anywhere}.error{color:#a40000;font-weight:600}
input{font:inherit;width:100%;box-sizing:border-box;padding:.5rem;margin:.25rem 0 1rem}
button{font:inherit;padding:.5rem 1.25rem;margin-right:.5rem}`
const styleHash = createHash('sha256').update(style).digest('base64')

const meanings: Record<string, string> = {
  'agent:read': 'read your tasks and their results',
  'agent:write': 'send work to agents, cancel it and rate it',
  'agent:execute': 'read your tasks and send work to agents',
  'agent:admin': 'manage this machine as its operator: admit, block and remove agents',
}

/** Returns the headers of a page. `formTarget` is an additional target that its form may use. */
export function pageHeaders(formTarget = ''): Record<string, string> {
  return {
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-store',
    'content-security-policy': `default-src 'none'; style-src 'sha256-${styleHash}'; form-action 'self'${formTarget && ` ${formTarget}`}; frame-ancestors 'none'; base-uri 'none'`,
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
  }
}

/** The text shown while the storage is unavailable. */
export const unavailableText = 'This page is temporarily unavailable. Reload it in a few seconds.'

export interface Approval {
  clientId: string
  clientName?: string | undefined
  scopes: string[]
  resources: string[]
  redirectHost: string
  error?: string
}

/** Returns the page with the approval form, which is posted to the page's own address. */
export function approvalPage(approval: Approval): string {
  const { clientId, clientName, scopes, resources, redirectHost, error } = approval
  return page(
    'Approve an application',
    html`<h1><bdi>${clientName ?? clientId}</bdi> asks for access</h1>
<p>Application <code>${clientId}</code>, which continues at <code>${redirectHost}</code>, would be able to:</p>
<ul>${scopes.map((scope) => html`<li><code>${scope}</code> ${meanings[scope] ?? ''}</li>`)}</ul>
${resources.length === 0 ? '' : html`<p>At: ${resources.map((resource) => html`<code>${resource}</code> `)}</p>`}
${error === undefined ? '' : html`<p class="error" role="alert">${error}</p>`}
<form method="post" autocomplete="off">
<label for="code">Sign-in code of this machine (file <code>sign-in-code</code> among the gateway's keys)</label>
<input id="code" name="code" type="password" maxlength="64" autocomplete="off" autofocus>
<button name="decision" value="approve">Approve</button><button name="decision" value="refuse">Refuse</button>
</form>`,
  )
}

export function errorPage(text: string): string {
  return page('This did not work', html`<h1>This did not work</h1><p class="error">${text}</p>`)
}

function page(title: string, body: Markup): string {
  return html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>${new Markup(style)}</style></head>
<body>${body}</body></html>`.text
}
