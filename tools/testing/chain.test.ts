import { expect, test } from 'vitest'
import { TestChain } from './chain.ts'

test('a chain has a token, mints, reports balances and transfers, and can mine on demand', async () => {
  await using chain = await TestChain.start()
  const payer = await chain.payer(70_000n)
  expect(await chain.balanceOf(payer.address)).toBe(70_000n)
  expect(await chain.paidTo(payer.address)).toMatchObject([{ atomic: 70_000n, to: payer.address }])
  await chain.mineByItself(false)
  const minted = chain.mint(payer.address, 1n)
  expect(await chain.balanceOf(payer.address)).toBe(70_000n)
  await chain.mineByItself(true)
  await chain.mine()
  await minted
  expect(await chain.balanceOf(payer.address)).toBe(70_001n)
})
