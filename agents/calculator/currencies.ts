const codes = 'EUR USD GBP JPY CHF CNY INR CAD AUD NZD SEK NOK DKK PLN CZK HUF BRL MXN ZAR KRW TRY SGD HKD'

/** Supported currencies. They cannot be converted into each other because exchange rates change daily. */
export const currencies: ReadonlySet<string> = new Set(codes.split(' '))
