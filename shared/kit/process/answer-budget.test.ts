import { expect, test } from 'vitest'
import { AnswerBudget } from './answer-budget.ts'

const mebibyte = 1024 * 1024
const limits = { callerMaxBytes: 4 * mebibyte, processMaxBytes: 8 * mebibyte }

test('a caller over its limit gets 429 with Retry-After until one of its responses has been read', () => {
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

test('beyond the limit of the process, every caller gets 503 with Retry-After', () => {
  const budget = new AnswerBudget(limits)
  budget.open('alice').reserve(4 * mebibyte)
  budget.open('bob').reserve(4 * mebibyte)
  expect(() => budget.open('carol').reserve(mebibyte)).toThrow(
    expect.objectContaining({ status: 503, headers: { 'retry-after': '2' } }),
  )
})

test('small responses count only for their caller, not for the process', () => {
  const budget = new AnswerBudget(limits)
  budget.open('alice').reserve(4 * mebibyte)
  budget.open('bob').reserve(4 * mebibyte)
  const held = budget.bytes
  for (let count = 0; count < 4; count += 1) budget.open('alice').reserve(64 * 1024)
  expect(() => budget.open('alice').reserve(64 * 1024)).toThrow(expect.objectContaining({ status: 429 }))
  for (let count = 0; count < 64; count += 1) budget.open('carol').reserve(64 * 1024)
  expect(() => budget.open('carol').reserve(1)).toThrow(expect.objectContaining({ status: 429 }))
  expect(budget.bytes).toBe(held)
})

test('a response larger than the limit is allowed if no other response to the caller is pending', () => {
  const budget = new AnswerBudget(limits)
  const large = budget.open('alice')
  large.reserve(100 * mebibyte)
  expect(budget.bytes).toBe(3.75 * mebibyte)
  expect(() => budget.open('alice').reserve(mebibyte)).toThrow(expect.objectContaining({ status: 429 }))
  large[Symbol.dispose]()
  expect(budget.bytes).toBe(0)
})

test('a rejected or released claim holds no bytes', () => {
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
