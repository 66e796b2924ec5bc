const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']
const days = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun']
const sizes = ['xxs', 'xs', 's', 'm', 'l', 'xl', 'xxl', 'xxxl']
const levels = ['very low', 'low', 'medium', 'high', 'very high']

/** Ranks names in the order that readers expect: months, weekdays, quarters, sizes, numbers and ranges. */
export function calendarOrder(names: string[]): ((name: string) => number) | undefined {
  const places = orders.find((order) => names.every((name) => order(name.toLowerCase()) >= 0))
  return places && ((name) => places(name.toLowerCase()))
}

const orders: ((name: string) => number)[] = [
  (name) => (/^[a-z]{3,9}\.?$/.test(name) ? months.indexOf(name.slice(0, 3)) : -1),
  (name) => (/^[a-z]{3,9}\.?$/.test(name) ? days.indexOf(name.slice(0, 3)) : -1),
  (name) => sizes.indexOf(name),
  (name) => levels.indexOf(name),
  // "Q3", "week 12", "25-34", "65+", "<18"
  (name) => {
    const number = /^(?:q|week |day |month |year |grade |level |[<≤])?(\d{1,6})(?:\s*[-–]\s*\d+|\+)?$/.exec(
      name,
    )?.[1]
    return number === undefined ? -1 : Number(number) - (/^[<≤]/.test(name) ? 0.5 : 0)
  },
]
