import { expect, test } from 'vitest'
import { evaluate } from './evaluate.ts'

const outcomeOf = (expression: string, more = {}) => evaluate({ expression, ...more }, 5000)

test.each<[string, unknown, string]>([
  ['2 + 2', 4, '4'],
  ['0.1 + 0.2', 0.3, '0.3'],
  ['200 + 3%', 206, '206'],
  ['1/3', 0.33333333333333, '0.33333333333333'],
  ['2^100', '1267650600228229401496703205376', '1267650600228229401496703205376'],
  ['factorial(25)', '15511210043330985984000000', '15511210043330985984000000'],
  ['sqrt(-4)', '2i', '2i'],
  ['1/0', 'Infinity', 'Infinity'],
  ['3 < 4', true, 'true'],
  ['ln(e)', 1, '1'],
  ['det([1, 2; 3, 4])', -2, '-2'],
  [
    'inv([[1, 2], [3, 4]])',
    [
      [-2, 1],
      [1.5, -0.5],
    ],
    '[[-2, 1], [1.5, -0.5]]',
  ],
  ['[1, 2; 3, 4] * [5; 6]', [[17], [39]], '[[17], [39]]'],
  ['eigs([2, 0; 0, 3]).values', [2, 3], '[2, 3]'],
  ['1:3', [1, 2, 3], '[1, 2, 3]'],
  ['fraction(1, 3)', '1/3', '1/3'],
])('%s = %j', (expression, result, formatted) => {
  expect(outcomeOf(expression)).toMatchObject({ ok: true, expression, result, formatted })
})

test.each([
  ['12 inch to cm', 30.48, 'cm'],
  ['3 kg in lb', 6.6138678655463, 'lb'],
  ['5 kg * 9.81 m/s^2', 49.05, 'N'],
  ['(5 feet + 3 inches) to cm', 160.02, 'cm'],
  ['20 degC to degF', 68, 'degF'],
  ['20 celsius to fahrenheit', 68, 'fahrenheit'],
  ['10 pounds to kg', 4.5359237, 'kg'],
  ['100 mph to km/h', 160.9344, 'km / h'],
  ['500 kcal to kJ', 2092, 'kJ'],
  ['1 knot to km/h', 1.852, 'km / h'],
  ['2 GB to MB', 2000, 'MB'],
  ['84 EUR * (1 + 15%) / 3', 32.2, 'EUR'],
  ['1250.50 USD + 300 USD', 1550.5, 'USD'],
])('the result of %s has a number and a unit', (expression, value, unit) => {
  expect(outcomeOf(expression)).toMatchObject({
    ok: true,
    type: 'Unit',
    value,
    unit,
    result: `${value} ${unit}`,
  })
})

test('statements share variables and functions, and each has a result', () => {
  expect(outcomeOf('a = 3; f(x) = x^2 # squares\nf(a) + 1')).toMatchObject({
    result: 10,
    steps: [
      { expression: 'a = 3', formatted: '3' },
      { expression: 'f(x) = x^2', formatted: 'a function' },
      { expression: 'f(a) + 1', formatted: '10' },
    ],
  })
})

test('variables do not persist between calculations', () => {
  expect(outcomeOf('secret = 5')).toMatchObject({ ok: true })
  expect(outcomeOf('secret')).toMatchObject({ ok: false, missing: 'secret' })
})

test('precision is the number of significant digits', () => {
  expect(outcomeOf('1/3', { precision: 3 })).toMatchObject({ formatted: '0.333', result: 0.333 })
  expect(outcomeOf('1/3', { precision: 40 })).toMatchObject({ formatted: `0.${'3'.repeat(40)}` })
})

test('ans is the previous result', () => {
  expect(outcomeOf('ans * 2', { ans: '30.48 cm' })).toMatchObject({ result: '60.96 cm' })
})

test.each([
  ['2 +* 3', 'syntax', { char: 4 }],
  ['1 +', 'syntax', {}],
  ['x + 1', 'unknown', { missing: 'x' }],
  ['foo(2)', 'unknown', {}],
  ['5 kg to cm', 'mismatch', {}],
  ['inv([1, 2; 2, 4])', 'mismatch', {}],
  ['[1, 2] * [1, 2, 3]', 'mismatch', {}],
  ['f(n) = f(n - 1); f(1)', 'size', {}],
  ['ones(300, 300)', 'size', {}],
  ['bigint(3)^bigint(1e10)', 'size', {}],
])('%s causes a fault of the kind %s', (expression, fault, more) => {
  expect(outcomeOf(expression)).toMatchObject({ ok: false, fault, ...more })
})

test.each([
  'import({a: 1})',
  'createUnit("foo")',
  'evaluate("1 + 1")',
  'parse("1")',
  'parser()',
  'compile("1")',
  'chain(3)',
  'config({})',
  'typed("a", {})',
  'simplify("x + x")',
  'derivative("x^2", "x")',
  'rationalize("x")',
  'resolve("x")',
  'help(sin)',
  'reviver()',
  'f(x) = parse(x); f("1")',
  'map(["1"], parse)',
  'p = parse',
  'cos.constructor("return process")',
  '{"__proto__": {polluted: 1}}.polluted',
  '[1, 2].map(sin)',
  '__proto__',
  'constructor',
  '__defineGetter__ = 3',
])('rejects functions that reach beyond the calculation: %s', (expression) => {
  expect(outcomeOf(expression)).toMatchObject({ ok: false, fault: 'refused' })
})

test.each([
  '"a".constructor',
  '{a: 1}.constructor',
  '{a: 1}["__proto__"]',
  'cos.constructor',
  'toString',
  '[1]["constructor"]',
])('rejects access to internals of values: %s', (expression) => {
  expect(outcomeOf(expression)).toMatchObject({ ok: false })
})

test('terminates an endless calculation at the time limit', () => {
  const outcome = evaluate({ expression: 'f(n) = n < 2 ? 1 : f(n - 1) + f(n - 2); f(60)' }, 300)
  expect(outcome).toMatchObject({ ok: false, fault: 'time' })
})
