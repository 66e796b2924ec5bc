/** Small tables for tests. */
export const sales = [
  'Date,Region,Product,Units,Sales (USD)',
  ...Array.from({ length: 24 }, (_none, at) => {
    const month = String((at % 12) + 1).padStart(2, '0')
    const region = ['North', 'South'][Math.floor(at / 12)]
    const units = 10 + (at % 12) * 3 + (region === 'South' ? 20 : 0)
    return `2024-${month}-05,${region},Kettle,${units},"${(units * 125).toLocaleString('en-US')}"`
  }),
].join('\n')

export const months =
  'month,sales,cost\nJan,120,80\nFeb,135,82\nMar,160,95\nApr,150,90\nMay,180,99\nJun,210,105'

export const people = [
  'name;alter;größe',
  ...Array.from({ length: 30 }, (_none, at) => `Person ${at};${20 + ((at * 7) % 40)};${150 + at},5`),
].join('\n')
