/** Files that a message carries, as base64 in its JSON. */

/** A request is limited to 10 MiB (docs/spec/json-rpc.md#http), and base64 needs a third more than the file. */
export const filesMaxBytes = 7 * 1024 * 1024
export const filesMax = 20

/**
 * @typedef {{ name: string, type: string, size: number, bytes: string }} Attachment
 */

/**
 * Returns why the files cannot be attached, or undefined.
 * @param {readonly { name: string, size: number }[]} files
 * @param {readonly { size: number }[]} attached
 * @returns {string | undefined}
 */
export function fileFault(files, attached) {
  const empty = files.find(({ size }) => size === 0)
  if (empty !== undefined) return `${empty.name} is empty, or it is a folder. Choose a file with content.`
  if (files.length + attached.length > filesMax) return `A message takes at most ${filesMax} files here.`
  const total = [...files, ...attached].reduce((sum, { size }) => sum + size, 0)
  if (total <= filesMaxBytes) return undefined
  return `The files of a message may have ${sizeText(filesMaxBytes)} in total, and these have ${sizeText(total)}. Send a larger file by its address, or use the command line.`
}

/** @param {number} bytes */
export function sizeText(bytes) {
  if (bytes < 1024) return `${bytes} bytes`
  if (bytes < 1024 * 1024) return `${Math.ceil(bytes / 1024)} KiB`
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`
}

/**
 * @param {File} file
 * @returns {Promise<Attachment>}
 */
export async function attachmentOf(file) {
  const buffer = await file.arrayBuffer()
  return {
    name: file.name,
    type: file.type || 'application/octet-stream',
    size: file.size,
    bytes: base64(buffer),
  }
}

/** @param {ArrayBuffer} buffer */
function base64(buffer) {
  const bytes = new Uint8Array(buffer)
  let binary = ''
  for (let at = 0; at < bytes.length; at += 0x8000)
    binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000))
  return btoa(binary)
}
