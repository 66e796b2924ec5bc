import { createHash } from 'node:crypto'
import type { Provenance } from '../clients/unverified-client.ts'

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

const style = `:root{color-scheme:light dark;--text:#1b1b1f;--soft:#55565c;--page:#f2f2f5;--card:#fff;--line:#c9c9d1;--accent:#1f4fbf;--on:#fff;--error:#a40000;--note:#fff4d6}
@media(prefers-color-scheme:dark){:root{--text:#ececf0;--soft:#b3b4bd;--page:#17171b;--card:#222228;--line:#4a4a55;--accent:#9db8ff;--on:#10131c;--error:#ffa198;--note:#3a3118}}
*{box-sizing:border-box}body{font:1rem/1.5 system-ui,sans-serif;margin:0;padding:clamp(0rem,5vw,4rem) clamp(0rem,4vw,2rem);color:var(--text);background:var(--page)}
main{max-width:36rem;margin:0 auto;padding:clamp(1.25rem,4vw,2rem);background:var(--card);border:1px solid var(--line);border-radius:.75rem}
h1{font-size:1.4rem;line-height:1.25;margin:0 0 1.25rem;overflow-wrap:anywhere}h2{font-size:1rem;margin:1.25rem 0 .25rem}
code{font-size:.9em;overflow-wrap:anywhere}.soft{color:var(--soft);font-size:.9rem;margin:.25rem 0}
dl{margin:0;display:grid;grid-template-columns:max-content 1fr;gap:.5rem 1.25rem}dt{color:var(--soft)}dd{margin:0;min-width:0;overflow-wrap:anywhere}
@media(max-width:30rem){dl{display:block}dd{margin-bottom:.6rem}}
ul{margin:0;padding-left:1.25rem}.note{background:var(--note);border-radius:.5rem;padding:.75rem 1rem;margin:1.25rem 0}.error{color:var(--error);font-weight:600;margin:.25rem 0 .75rem}
label{display:block;font-weight:600;margin-top:1.25rem}input{font:inherit;width:100%;padding:.6rem;margin:.25rem 0;color:inherit;background:var(--page);border:1px solid var(--line);border-radius:.4rem}
input[aria-invalid]{border-color:var(--error)}.buttons{display:flex;flex-wrap:wrap;gap:.75rem;margin:1.25rem 0 1rem}
button{font:inherit;font-weight:600;padding:.6rem 1.5rem;border-radius:.4rem;border:1px solid var(--accent);background:var(--accent);color:var(--on);cursor:pointer}
button.second{background:none;color:var(--accent)}:focus-visible{outline:3px solid var(--accent);outline-offset:2px}`
const styleHash = createHash('sha256').update(style).digest('base64')

const meanings: Record<string, string> = {
  'agent:read': 'Read your tasks and their results',
  'agent:write': 'Send work to agents in your name, cancel it and rate it',
  'agent:execute': 'Read your tasks and send work to agents in your name',
  'agent:admin': 'Manage this gateway as its operator: admit, block and remove agents',
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
  /** What the resources are for people, for example an agent. Undefined for other servers. */
  serverNames: (ServerName | undefined)[]
  provenance: Provenance | 'managed' | 'registered'
  redirectHost: string
  /** Whether the application continues on the device of the browser. */
  isOnThisDevice: boolean
  /** The host of this server. */
  host: string
  error?: string
}

/** A resource of the gateway in words. */
export interface ServerName {
  /** The name of the agent. Undefined for all agents. */
  agent?: string
  /** The interface, for example "MCP". */
  through?: string
}

/** Returns the page with the approval form, which is posted to the page's own address. */
export function approvalPage(approval: Approval): string {
  const { clientId, clientName, scopes, redirectHost, isOnThisDevice, host, error } = approval
  const name = html`<bdi>${clientName ?? hostOf(clientId) ?? clientId}</bdi>`
  const agents = approval.serverNames.map((server) => server?.agent)
  const target =
    agents.length === 1 && agents[0] !== undefined ? html`the agent <bdi>${agents[0]}</bdi>` : 'your agents'
  return page(
    error === undefined ? 'Allow an application' : 'The code was not accepted',
    html`<h1>Allow ${name} to use ${target}?</h1>
<dl><dt>Application</dt><dd>${name}${originOf(approval)}</dd>
<dt>Access to</dt><dd>${accessOf(approval)}</dd>
<dt>Gateway</dt><dd>${host}</dd>
<dt>Continues at</dt><dd><code>${redirectHost}</code>${isOnThisDevice ? ', a program on this device' : ''}</dd></dl>
<h2>It will be able to</h2>
<ul>${scopes.map((scope) => html`<li>${meanings[scope] ?? ''} <code class="soft">${scope}</code></li>`)}</ul>
${noteOf(approval)}
<form method="post" autocomplete="off">
<label for="code">Sign-in code</label>
<input id="code" name="code" type="password" maxlength="64" autocomplete="off" aria-describedby="help${error === undefined ? '' : ' error'}"${error === undefined ? '' : new Markup(' aria-invalid="true" autofocus')}>
${error === undefined ? '' : html`<p class="error" id="error" role="alert">${error}</p>`}
<p class="soft" id="help">To see the code, run <code>npx parley token --sign-in-code</code> on the computer of the gateway. It is stored in <code>oauth/sign-in-code</code> in the data folder.</p>
<div class="buttons"><button name="decision" value="approve">Allow</button><button class="second" name="decision" value="refuse">Deny</button></div>
</form>
<p class="soft">The access ends after 30 days. You can end it before with <code>npx parley clients revoke</code>.</p>`,
  )
}

/** The facts that show where the application comes from. */
function originOf({ clientId, provenance }: Approval): Markup {
  if (provenance === 'document')
    return html`<br>described by <strong>${hostOf(clientId) ?? ''}</strong> at <code>${clientId}</code>`
  const facts = {
    open: 'not verified; it registered itself as',
    registered: 'registered as',
    managed: 'set up by this gateway as',
  }
  return html`<br>${facts[provenance]} <code>${clientId}</code>`
}

function accessOf({ resources, serverNames }: Approval): Markup {
  if (resources.length === 0) return html`all agents of this gateway`
  return html`${resources.map((resource, index) => {
    const server = serverNames[index]
    const what =
      server?.agent === undefined
        ? 'all agents of this gateway'
        : html`only the agent <bdi>${server.agent}</bdi>`
    const through = server?.through === undefined ? '' : `, through ${server.through}`
    return html`${index === 0 ? '' : html`<br>`}${server === undefined ? 'the server' : what}${through}<br><code class="soft">${resource}</code>`
  })}`
}

function noteOf({ clientId, provenance, isOnThisDevice }: Approval): Markup | string {
  if (provenance === 'managed' || provenance === 'registered') return ''
  const claim =
    provenance === 'open'
      ? 'The name is not verified: any program can register under any name.'
      : `The name is a claim of ${hostOf(clientId) ?? clientId}.`
  const device =
    provenance === 'document' && isOnThisDevice
      ? ' Any program on this device can present itself as this application.'
      : ''
  return html`<p class="note" role="note">${claim}${device} Allow it only if you have just started this from an application that you trust.</p>`
}

function hostOf(clientId: string): string | undefined {
  return /^https?:/.test(clientId) ? URL.parse(clientId)?.host : undefined
}

export interface SignInForm {
  /** The host of this server. */
  host: string
  /** The name that was entered before. */
  account?: string
  error?: string
  /** A value that the form sends back. */
  token?: string
}

/** Returns the page on which a person signs in to the console. Its form is posted to the page's own address. */
export function signInPage({ host, account = '', error, token }: SignInForm): string {
  const invalid = error === undefined ? '' : new Markup(' aria-invalid="true" aria-describedby="error"')
  const [onName, onPassword] = ['', new Markup(' autofocus')]
  return page(
    error === undefined ? 'Sign in' : 'Sign-in failed',
    html`<h1>Sign in to Parley</h1>
<p class="soft">Console of the gateway <strong>${host}</strong></p>
<form method="post">
${token === undefined ? '' : html`<input type="hidden" name="token" value="${token}">`}
<label for="account">Account</label>
<input id="account" name="account" value="${account}" maxlength="63" autocomplete="username" autocapitalize="none" spellcheck="false" required${invalid}${account === '' ? onPassword : onName}>
<label for="password">Password</label>
<input id="password" name="password" type="password" maxlength="200" autocomplete="current-password" required${invalid}${account === '' ? onName : onPassword}>
${error === undefined ? '' : html`<p class="error" id="error" role="alert">${error}</p>`}
<div class="buttons"><button>Sign in</button></div>
</form>
<p class="soft">An operator creates accounts with <code>npx parley operators add</code>, and new passwords with <code>npx parley operators reset-password</code>.</p>`,
  )
}

/** @param link an address of this server where the person can continue */
export function errorPage(text: string, link?: { href: string; text: string }): string {
  const next = link === undefined ? '' : html`<p><a href="${link.href}">${link.text}</a></p>`
  return page('This did not work', html`<h1>This did not work</h1><p class="error">${text}</p>${next}`)
}

function page(title: string, body: Markup): string {
  return html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>${new Markup(style)}</style></head>
<body><main>${body}</main></body></html>`.text
}
