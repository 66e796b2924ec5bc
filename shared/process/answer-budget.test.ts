import { expect, test } from 'vitest'
import { AnswerBudget } from './answer-budget.ts'

const mebibyte = 1024 * 1024
const limits = { callerMaxBytes: 4 * mebibyte, processMaxBytes: 8 * mebibyte }

test('a caller over its limit is refused with 429 and Retry-After until one of its answers has been read', () => {
  const budget = new AnswerBudget(limits)
  const [first, second] = [budget.open('alice'), budget.open('alice')]
  first.reserve(3 * mebibyte)
  expect(() => second.reserve(2 * mebibyte)).toThrow(
    expect.objectContaining({ status: 429, headers: { 'retry-after': '1' } }),
  )
  budget.open('bob').reserve(2 * mebibyte)
  first[Symbol.dispose]()
  second.reserve(2 * mebibyte)
  expect(budget.bytes).toBe(4 * mebibyte)
})

test('beyond the limit of the process every caller is refused with 503 and Retry-After', () => {
  const budget = new AnswerBudget(limits)
  budget.open('alice').reserve(4 * mebibyte)
  budget.open('bob').reserve(4 * mebibyte)
  expect(() => budget.open('carol').reserve(mebibyte)).toThrow(
    expect.objectContaining({ status: 503, headers: { 'retry-after': '2' } }),
  )
})

test('small answers are not counted, so a full budget does not stop them', () => {
  const budget = new AnswerBudget(limits)
  budget.open('alice').reserve(4 * mebibyte)
  budget.open('bob').reserve(4 * mebibyte)
  for (let count = 0; count < 1000; count += 1) budget.open('alice').reserve(64 * 1024)
  expect(budget.bytes).toBe(8 * mebibyte)
})

test('an answer larger than the limit is let through where the caller has no other under way', () => {
  const budget = new AnswerBudget(limits)
  const large = budget.open('alice')
  large.reserve(100 * mebibyte)
  expect(budget.bytes).toBe(4 * mebibyte)
  expect(() => budget.open('alice').reserve(mebibyte)).toThrow(expect.objectContaining({ status: 429 }))
  large[Symbol.dispose]()
  expect(budget.bytes).toBe(0)
})

test('a claim that was refused or released holds nothing', () => {
  const budget = new AnswerBudget(limits)
  const claim = budget.open('alice')
  claim.reserve(mebibyte)
  expect(claim.tryReserve(3 * mebibyte)).toBe(true)
  budget.open('alice').reserve(mebibyte)
  expect(claim.tryReserve(4 * mebibyte)).toBe(false)
  claim[Symbol.dispose]()
  claim.reserve(mebibyte)
  expect(budget.bytes).toBe(mebibyte)
})
