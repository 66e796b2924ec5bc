import { bounds, TableFault } from '../bounds.ts'

/** Decodes a file as UTF-8, as UTF-16 if it has a byte order mark, or as Windows-1252, which spreadsheets write. */
export function decode(bytes: Uint8Array): string {
  if (bytes.length > bounds.bytesMax)
    throw new TableFault(`The file is larger than ${bounds.bytesMax / 1024 / 1024} MiB.`)
  if (bytes[0] === 0x50 && bytes[1] === 0x4b) {
    throw new TableFault(
      'This is a spreadsheet or zip file, not CSV. Please save the sheet as CSV and send that.',
    )
  }
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return new TextDecoder('utf-16le').decode(bytes)
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return new TextDecoder('utf-16be').decode(bytes)
  if (bytes.subarray(0, 4096).includes(0)) throw new TableFault('This is a binary file, not CSV.')
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return new TextDecoder('windows-1252').decode(bytes)
  }
}
