import { expect, test } from 'vitest'
import { canonicalJson } from './canonical-json.ts'

test.each<[string, string]>([
  // RFC 8785, section 3.2.3.
  [
    '{"\\u20ac":"Euro Sign","\\r":"Carriage Return","\\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\\ud83d\\ude00":"Emoji: Grinning Face","\\u0080":"Control","\\u00f6":"Latin Small Letter O With Diaeresis"}',
    '{"\\r":"Carriage Return","1":"One","\u0080":"Control","ö":"Latin Small Letter O With Diaeresis","€":"Euro Sign","😀":"Emoji: Grinning Face","\ufb33":"Hebrew Letter Dalet With Dagesh"}',
  ],
  // Section 3.2.2.
  [
    '{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/","literals":[null,true,false]}',
    '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
  ],
  [' [ -0 , { } , [ ] , "" ] ', '[0,{},[],""]'],
])('%s', (json, canonical) => {
  expect(canonicalJson(JSON.parse(json))).toBe(canonical)
})

test('what is no JSON is refused', () => {
  expect(() => canonicalJson(Number.NaN)).toThrow()
})
