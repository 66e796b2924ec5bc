const codes = 'EUR USD GBP JPY CHF CNY INR CAD AUD NZD SEK NOK DKK PLN CZK HUF BRL MXN ZAR KRW TRY SGD HKD'

/** Currencies that amounts can be calculated in. They do not convert into each other: rates change daily. */
export const currencies: ReadonlySet<string> = new Set(codes.split(' '))
