import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { PriceDefinition } from '@parley/wire/model/price'
import { x402Client } from '@x402/core/client'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'

export const price: PriceDefinition = {
  amount: '0.01',
  asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
  network: 'eip155:84532',
  payTo: '0x1111111111111111111111111111111111111111',
  extra: { name: 'USDC', version: '2' },
}

export interface Requirements {
  scheme: 'exact'
  network: `${string}:${string}`
  asset: string
  amount: string
  payTo: string
  maxTimeoutSeconds: number
  extra: { name: string; version: string }
}

export const requirements: Requirements = {
  scheme: 'exact',
  network: 'eip155:84532',
  asset: price.asset,
  amount: '10000',
  payTo: price.payTo,
  maxTimeoutSeconds: 300,
  extra: { name: 'USDC', version: '2' },
}

/** The prices in the body of a 402, for clients of x402 version 1. */
export const requirementsInBody = { ...requirements, network: 'base-sepolia' }

/** A signed payment, as the official client creates it. */
export interface Payment {
  x402Version: number
  accepted: Requirements
  payload: { signature: string; authorization: Record<string, string> }
}

/** A wallet with the official x402 client. */
export class TestWallet {
  readonly account = privateKeyToAccount(generatePrivateKey())
  readonly client = new x402Client()
    .setSpendControls({ allowedAssets: true, maxAmountPerPayment: false })
    .register('eip155:*', new ExactEvmScheme(this.account))

  /** Signs a payment for the requested price. */
  async pay(requested: Partial<Requirements> = {}): Promise<Payment> {
    const accepts = [{ ...requirements, ...requested }]
    const resource = { url: 'http://127.0.0.1/', description: 'test', mimeType: 'application/json' }
    return (await this.client.createPaymentPayload({
      x402Version: 2,
      accepts,
      resource,
    })) as unknown as Payment
  }

  /** The signed payment as a header. */
  async header(requested: Partial<Requirements> = {}): Promise<Record<string, string>> {
    return { 'x-payment': encoded(await this.pay(requested)) }
  }

  /** Signs an authorization with values that the official client does not allow. */
  async payWith(authorization: Record<string, string>): Promise<Payment> {
    const payment = await this.pay()
    const reply = { ...payment.payload.authorization, ...authorization }
    const { from, to, value, validAfter, validBefore, nonce } = reply as Record<string, string>
    const signature = await this.account.signTypedData({
      domain: {
        ...requirements.extra,
        chainId: 84532,
        verifyingContract: requirements.asset as `0x${string}`,
      },
      types: {
        TransferWithAuthorization: [
          { name: 'from', type: 'address' },
          { name: 'to', type: 'address' },
          { name: 'value', type: 'uint256' },
          { name: 'validAfter', type: 'uint256' },
          { name: 'validBefore', type: 'uint256' },
          { name: 'nonce', type: 'bytes32' },
        ],
      },
      primaryType: 'TransferWithAuthorization',
      message: {
        from: from as `0x${string}`,
        to: to as `0x${string}`,
        value: BigInt(value ?? 0),
        validAfter: BigInt(validAfter ?? 0),
        validBefore: BigInt(validBefore ?? 0),
        nonce: nonce as `0x${string}`,
      },
    })
    return { ...payment, payload: { signature, authorization: reply } }
  }
}

export const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64')
export const decoded = (header: string | null): Record<string, unknown> =>
  JSON.parse(Buffer.from(header ?? '', 'base64').toString('utf8')) as Record<string, unknown>

/** The facilitator's response: an HTTP status and JSON, no response, or one that the test computes. */
export type FacilitatorAnswer = { status?: number; json?: unknown; text?: string } | 'never'
type Answering = (nonce: string, earlier: number) => FacilitatorAnswer | Promise<FacilitatorAnswer>

/** An x402 facilitator over HTTP that settles payments or responds as the test specifies. */
export class TestFacilitator implements AsyncDisposable {
  readonly url: string
  readonly #server: ReturnType<typeof createServer>
  /** The nonces of requests to `/settle`, in order and with repetitions. */
  readonly settleCalls: string[] = []
  /** Transactions by nonce, as the chain would report them. */
  readonly moved = new Map<string, string>()
  verify: Answering = () => ({ json: { isValid: true } })
  settle: Answering = (nonce) => this.move(nonce)

  private constructor(server: ReturnType<typeof createServer>) {
    this.#server = server
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    server.on('request', (request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        const tell = (answer: FacilitatorAnswer) => {
          if (answer === 'never') return
          const text = answer.text ?? JSON.stringify(answer.json ?? {})
          response.writeHead(answer.status ?? 200, { 'content-type': 'application/json' }).end(text)
        }
        void this.#answer(request.url ?? '', Buffer.concat(chunks).toString()).then(tell)
      })
    })
  }

  static async start(): Promise<TestFacilitator> {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return new TestFacilitator(server)
  }

  /** Transfers the money once per nonce and returns the success response. */
  move(nonce: string): { json: object } {
    const transaction = this.moved.get(nonce) ?? `0x${(this.moved.size + 1).toString(16).padStart(64, '0')}`
    this.moved.set(nonce, transaction)
    return { json: { success: true, transaction, network: requirements.network } }
  }

  async #answer(path: string, body: string): Promise<FacilitatorAnswer> {
    // Clients of an earlier server on this port may still connect to it.
    if (path !== '/verify' && path !== '/settle') return { status: 404 }
    const requested = JSON.parse(body) as {
      paymentPayload: { payload: { authorization: { nonce: string } } }
    }
    const { nonce } = requested.paymentPayload.payload.authorization
    if (path === '/verify') return this.verify(nonce, 0)
    const earlier = this.settleCalls.filter((one) => one === nonce).length
    this.settleCalls.push(nonce)
    return this.settle(nonce, earlier)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}
