import { expect, test } from 'vitest'
import { samplePayment } from '../../store/store-payments.cases.ts'
import { capturePage } from './capture-page.ts'
import { explorerUrl } from './networks.ts'
import { qrCode } from './qr-code.ts'
import { type SessionView, sessionView } from './session-view.ts'

const txHash = `0x${'ab'.repeat(32)}`
const expiresAt = Date.parse('2099-11-22T12:15:00Z')
const at = '2026-11-22T12:01:02.000Z'

function page(session: Partial<SessionView['session']> = {}, more: Partial<SessionView> = {}): string {
  const record = samplePayment({ kind: 'session', state: 'open', expiresAt, ...session })
  return capturePage(
    sessionView({
      session: record,
      token: 'token',
      agent: {
        name: 'Chart maker',
        description: 'Draws charts',
        skills: [{ id: 'pie', name: 'Pie charts' }],
      },
      captureUrl: 'https://agents.example/agents/charts/pay/token',
      now: Date.parse('2099-11-22T12:00:00Z'),
      ...more,
    }),
  )
}
const paid = { state: 'spent' as const, txHash, payer: `0x${'2'.repeat(40)}`, completedAt: at }
const onBase = { ...samplePayment().terms, network: 'eip155:8453' }

test('the receipt names seller, service, amount, payer and transaction, with a link to the explorer of a known network', () => {
  const text = page({ ...paid, terms: onBase, sandbox: false, skillId: 'pie' })
  for (const part of ['Chart maker', 'Pie charts', '0.01', paid.payer, txHash, 'View at basescan.org'])
    expect(text).toContain(part)
  expect(text).toContain(`href="https://basescan.org/tx/${txHash}" rel="noreferrer"`)
  expect(text).toContain(`<time datetime="${at}">2026-11-22 12:01:02 UTC</time>`)
})

test.each([
  ['test money', { terms: onBase, sandbox: true }],
  ['an unknown network', { terms: { ...onBase, network: 'eip155:999' }, sandbox: false }],
  ['a network named like a property', { terms: { ...onBase, network: '__proto__' }, sandbox: false }],
])('the receipt has no explorer link for %s', (_what, session) => {
  expect(page({ ...paid, ...session })).not.toContain('View at')
})

test('no link leads to an explorer with a transaction that is not a hash', () => {
  const network = { network: 'eip155:1', sandbox: false }
  for (const hash of ['0x', '../x', `${txHash}?a=b`, '"><script>'])
    expect(explorerUrl(network, hash)).toBeUndefined()
})

test('the return link names its host, and is missing for any other address', () => {
  const link = '<a class="return" href="https://shop.example/done?a=1&amp;b=2" rel="noreferrer">'
  const returnUrl = 'https://shop.example/done?a=1&b=2'
  expect(page({ ...paid, returnUrl })).toContain(`${link}Return to <bdi>shop.example</bdi>`)
  expect(page({ returnUrl })).toContain(`${link}Cancel and return to`)
  for (const unsafe of ['javascript:alert(1)', 'data:text/html,x', '//shop.example', 'x'])
    expect(page({ ...paid, returnUrl: unsafe })).not.toContain('class="return"')
})

test('an open session has a QR code of the page, and technical ids are folded away', () => {
  const text = page()
  expect(text).toMatch(/<details class="phone"><summary>Pay with a wallet on your phone<\/summary>/)
  expect(text).toContain('<svg class="qr" role="img"')
  expect(text).not.toContain('ethereum:')
  expect(text).toMatch(/<details class="facts"><summary>Technical details<\/summary><dl>[^]*<dt>Session/)
  expect(page(paid)).not.toContain('<svg')
})

test('a session with a direct transfer has a link and a QR code of exactly this transfer (EIP-681)', () => {
  const terms = { ...onBase, amount: '0.010437', atomic: '10437' }
  const text = page({ terms: onBase, sandbox: false }, { transfer: terms })
  const uri = `ethereum:${terms.asset}@8453/transfer?address=${terms.payTo}&uint256=10437`
  expect(text).toContain(`<a href="${uri.replace('&', '&amp;')}">`)
  expect(text).toContain(qrCode(uri, 'QR code with the transfer for your wallet')?.text)
  expect(text).toContain('<strong>0.010437 <bdi>USD Coin</bdi></strong> on Base')
  expect(text).toContain('<p class="amount">0.01 ')
  expect(text).not.toContain('Do not send money')
  const without = page({ terms: onBase, sandbox: false })
  expect(without).toContain('Do not send money to the receiver directly')
  const expired = { state: 'expired' as const, terms: onBase, sandbox: false }
  expect(page(expired)).toContain('<p>No money was taken.')
  const expiredText = page(expired, { transfer: terms })
  expect(expiredText).not.toContain('<p>No money was taken')
  expect(expiredText).toContain('a late one is listed for a refund')
})

test('a page with a direct transfer shows the exact amount without a click, and says what becomes of it after a failure', () => {
  const terms = { ...onBase, amount: '0.010437', atomic: '10437' }
  const text = page({ terms: onBase, sandbox: false }, { transfer: terms })
  expect(text.replace(/<details[^]*?<\/details>/g, '')).toContain('exactly <strong>0.010437 ')
  expect(text).not.toContain('Payments use x402: your wallet signs')
  const failed = { state: 'failed' as const, terms: onBase, sandbox: false, reason: 'insufficient_funds' }
  expect(page(failed)).toContain('No money was taken from your wallet.')
  expect(page(failed, { transfer: terms })).not.toContain('No money was taken from')
  expect(page(failed, { transfer: terms })).toContain('the transfer is listed for a refund')
})

test('a page whose address is too long for a code has none', () => {
  expect(qrCode('x'.repeat(601), 'code')).toBeUndefined()
  expect(page({}, { captureUrl: `https://a.example/${'x'.repeat(700)}` })).not.toContain('<svg')
})
