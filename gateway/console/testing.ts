interface TestRequest extends Omit<RequestInit, 'headers'> {
  headers?: Record<string, string>
}

/** A browser without pages: it keeps cookies of one origin and follows no redirects. */
export class TestBrowser {
  readonly origin: string
  readonly #cookies = new Map<string, { value: string; path: string }>()

  constructor(origin: string) {
    this.origin = origin
  }

  async fetch(address: string, init: TestRequest = {}): Promise<Response> {
    const url = new URL(address, this.origin)
    const response = await fetch(url, {
      redirect: 'manual',
      ...init,
      headers: { cookie: this.cookiesFor(url.pathname), accept: 'text/html', ...init.headers },
    })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      const path = /path=([^;]*)/i.exec(line)?.[1] ?? '/'
      if (value === '') this.#cookies.delete(name)
      else this.#cookies.set(name, { value, path })
    }
    return response
  }

  cookiesFor(pathname: string): string {
    return [...this.#cookies]
      .filter(([, { path }]) => pathname.startsWith(path))
      .map(([name, { value }]) => `${name}=${value}`)
      .join('; ')
  }

  cookie(name: string): string | undefined {
    return this.#cookies.get(name)?.value
  }

  setCookie(name: string, value: string): void {
    this.#cookies.set(name, { value, path: '/' })
  }

  /** Follows redirects below the origin and returns the last answer. */
  async open(address: string, init?: TestRequest): Promise<{ url: string; response: Response }> {
    let url = new URL(address, this.origin).href
    let response = await this.fetch(url, init)
    for (let hops = 0; hops < 10; hops += 1) {
      const location = response.headers.get('location')
      if (location === null) break
      url = new URL(location, url).href
      response = await this.fetch(url)
    }
    return { url, response }
  }

  /** Signs in with an account and returns the page to which the browser is sent. */
  async signIn(account: string, password: string): Promise<{ url: string; response: Response }> {
    const { url, response } = await this.open('/console/sign-in')
    const token = /name="token" value="([^"]*)"/.exec(await response.text())?.[1]
    const form = { account, password, ...(token !== undefined && { token }) }
    return this.open(url, { method: 'POST', body: new URLSearchParams(form) })
  }

  /** Sends a request of a page of the console, with the token of the session. */
  async api(path: string, init: TestRequest = {}): Promise<Response> {
    const { csrf } = await this.session()
    return this.fetch(`/console/api${path}`, {
      ...init,
      headers: { accept: 'application/json', 'x-csrf-token': csrf, ...init.headers },
    })
  }

  async session(): Promise<{ csrf: string; name: string; role: string; client_id: string }> {
    const response = await this.fetch('/console/session')
    if (response.status !== 200) throw new Error(await response.text())
    return (await response.json()) as Awaited<ReturnType<TestBrowser['session']>>
  }
}

/** Adds an account with an operator's token and returns its password. */
export async function addAccount(
  origin: string,
  token: string,
  account: { name: string; role: 'caller' | 'operator'; client_id?: string },
): Promise<string> {
  const response = await fetch(`${origin}/operator/accounts`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(account),
  })
  if (response.status !== 200) throw new Error(await response.text())
  return ((await response.json()) as { password: string }).password
}
