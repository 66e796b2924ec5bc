import { expect, test } from 'vitest'
import { ExpressionFault, expressionFrom } from './expression.ts'

test.each([
  ['what is 2+2?', '2+2'],
  ["What's the square root of 2?", 'sqrt(2)'],
  ['Please tell me what is 3 * 4.', '3 * 4'],
  ['Calculate 3 kg in lb', '3 kg in lb'],
  ['can you compute (2 + 3) * 4 for me?', '(2 + 3) * 4'],
  ['How much is 7 times 8 please?', '7 * 8'],
  ['How many cm are in 12 inches?', '12 inches to cm'],
  ['What is 15% of 80?', '15% * 80'],
  ['20 percent of 50', '20% * 50'],
  ['5 feet 3 inches to cm', '(5 feet + 3 inches) to cm'],
  ['2 hours and 30 minutes in seconds', '(2 hours + 30 minutes) in seconds'],
  ['20 °C in °F', '20 degC in degF'],
  ['20 degrees Celsius to Fahrenheit', '20 celsius to fahrenheit'],
  ['average of 1, 2 and 3', 'mean(1, 2, 3)'],
  ['what is the determinant of [1, 2; 3, 4]?', 'det([1, 2; 3, 4])'],
  ['1,250,000 / 4', '1250000 / 4'],
  ['max(1,200)', 'max(1,200)'],
  ['6 × 7 ÷ 2 − 1', '6 * 7 / 2 - 1'],
  ['5!', '5!'],
  ['2 + 2 =', '2 + 2'],
  ['evaluate("1")', 'evaluate("1")'],
  ['What is the result?\n```\na = 3\na * 2\n```', 'a = 3\na * 2'],
  ['concat("what is", "in")', 'concat("what is", "in")'],
])('removes words around an expression: %j', (text, expression) => {
  expect(expressionFrom(text, {})).toEqual({ expression })
})

test.each([
  ['What is 17 % of 89.90 €?', '17% * 89.90 EUR'],
  ['17% of $89.90', '17% * 89.90 USD'],
  ['17% von 89,90', '17% * 89.90'],
  ['split 84 € by 3 with 15% tip', '(84 EUR * (1 + 15%)) / 3'],
  ['Split a bill of $84 among 3 people with a 15% tip', '(84 USD * (1 + 15%)) / 3'],
  ['split 84 € 3 ways including 15% tip', '(84 EUR * (1 + 15%)) / 3'],
  ['add 19% VAT to 250', '250 + 19%'],
  ['add a 15% tip to 84 €', '84 EUR * (1 + 15%)'],
  ['84 € plus 15% tip divided by 3', '(84 EUR * (1 + 15%)) / 3'],
  ['split 84 for 3', '84 / 3'],
  ['what is a 15% tip on 84 dollars?', '15% * 84 USD'],
  ["what's the tip on 60 at 20%", '20% * 60'],
  ['20% off 80', '80 - 20%'],
  ['add 19% to 250', '250 + 19%'],
  ['add 5 and 7', '5 + 7'],
  ['subtract 5 from 12', '12 - 5'],
  ['20 is what percent of 80', '20 / 80 * 100'],
  ['divide 12 m by 4 s', '12 m / (4 s)'],
  ['half of 90', '90 / 2'],
  ['square of 12', '12^2'],
  ['What is 15 percent more than 200?', '200 + 15%'],
  ['20% less than 80 €', '80 EUR * (1 - 20%)'],
  ['percentage increase from 80 to 100', '(100 - 80) / 80 * 100'],
  ['from 80 to 100, what is the percentage increase?', '(100 - 80) / 80 * 100'],
  ['multiply 3 by 4 and subtract 2', '3 * 4 - 2'],
  ['double 45 and add 10', '2 * 45 + 10'],
  ['12 factorial', 'factorial(12)'],
  ['gcd of 84 and 36', 'gcd(84, 36)'],
  ['least common multiple of 4, 6 and 10', 'lcm(4, 6, 10)'],
  ['7 choose 3', 'combinations(7, 3)'],
  ['log base 2 of 1024', 'log(1024, 2)'],
  ['sum of 1 to 100', 'sum(1:100)'],
  ['sum of the numbers from 1 to 100', 'sum(1:100)'],
  ['divide 100 by 7, rounded to 2 decimals', 'round(100 / 7, 2)'],
  ['255 in binary', 'bin(255)'],
  ['hex of 255', 'hex(255)'],
  ['2 to the 10th power', '2 ^ 10'],
])('converts percentages, tips and other questions in words to one expression: %j', (text, expression) => {
  expect(expressionFrom(text, {})).toEqual({ expression })
})

test.each([
  ['how many km are 5 miles', '5 miles to km'],
  ['how many kilometers is 5 miles?', '5 miles to kilometers'],
  ['72 F in C', '72 degF in degC'],
  ['6 ft 2 in cm', '(6 ft + 2 in) to cm'],
  ['how long does it take to drive 120 km at 80 km/h', '(120 km) / (80 km/h) to hours'],
])('finds the target unit in any position: %j', (text, expression) => {
  expect(expressionFrom(text, {})).toEqual({ expression })
})

test.each([
  ['sin of 30 degrees', 'sin(30 degrees)'],
  ['What is the cosine of 60°?', 'cos(60 deg)'],
  ['tan 45 deg', 'tan(45 deg)'],
  ['sin(30°)', 'sin(30 deg)'],
  ['sin of 2 radians', 'sin(2 radians)'],
  ['sin 2', 'sin(2)'],
])('keeps the unit of an angle: %j', (text, expression) => {
  expect(expressionFrom(text, {})).toEqual({ expression })
})

test.each([
  ['1.234,56 * 2', '1234.56 * 2'],
  ['89,90 * 17%', '89.90 * 17%'],
  ['average of 1,5', 'mean(1,5)'],
  ['10k * 3', '10e3 * 3'],
  ['$2 million / 5', '2e6 USD / 5'],
  ['3x4', '3 * 4'],
  ['0x10 + 1', '0x10 + 1'],
  ['2x + 3', '2x + 3'],
  ['convert 10 usd to eur', '10 USD to EUR'],
  ['20 % of 50 chf', '20% * 50 CHF'],
])('reads common number formats: %j', (text, expression) => {
  expect(expressionFrom(text, {})).toEqual({ expression })
})

test('uses the expression and precision of a data part unchanged', () => {
  expect(expressionFrom('ignored', { expression: ' 1/3 ', precision: 30 })).toEqual({
    expression: '1/3',
    precision: 30,
  })
})

test.each([
  ['nothing', '', {}],
  ['only words', 'what is?', {}],
  ['an expression that is no text', '', { expression: 4 }],
  ['too long', '1+'.repeat(3000), {}],
  ['no digits', '', { expression: '1', precision: 0 }],
  ['too many digits', '', { expression: '1', precision: 65 }],
  ['half a digit', '', { expression: '1', precision: 1.5 }],
  ['digits as text', '', { expression: '1', precision: '5' }],
])('requests another expression and gives an example for %s', (_name, text, data) => {
  expect(() => expressionFrom(text, data)).toThrow(ExpressionFault)
})

test('reads endless punctuation without delay', () => {
  const hostile = `${'?'.repeat(1900)}a${'= ?! '.repeat(380)}b`
  expect(expressionFrom(hostile, {}).expression).toContain('b')
  expect(expressionFrom(`2 + 2 ${'= ? please! '.repeat(300)}`, {}).expression).toBe('2 + 2')
})
