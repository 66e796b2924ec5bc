import { getDocument, TextLayer } from 'unpdf/pdfjs'

/**
 * Draws a PDF document in a sandboxed frame. The frame has a separate origin and may not send requests. It receives the
 * document from the console, and draws its pages without running its scripts and without its links.
 *
 * @typedef {import('unpdf/pdfjs').PDFDocumentProxy} PdfDocument
 * @typedef {import('unpdf/pdfjs').PDFPageProxy} PdfPage
 */

const firstPages = 5
const morePages = 10
const pagesMax = 200
/** Larger pages are drawn with fewer pixels. */
const pixelsMax = 8_000_000
const imagePixelsMax = 32_000_000
/** A page that is extremely long or wide is cut to this ratio of its sides. */
const ratioMax = 8

const root = /** @type {HTMLElement} */ (document.getElementById('document'))

addEventListener('message', receive)
parent.postMessage('ready', '*')

/** @param {MessageEvent} event */
function receive({ source, data }) {
  if (source !== parent || !(data?.content instanceof ArrayBuffer)) return
  removeEventListener('message', receive)
  if (data.theme === 'light' || data.theme === 'dark') document.documentElement.style.colorScheme = data.theme
  void open(data.content)
}

/** @param {ArrayBuffer} content */
async function open(content) {
  try {
    const pdf = await getDocument({
      data: new Uint8Array(content),
      enableXfa: false,
      useWasm: false,
      useWorkerFetch: false,
      maxImageSize: imagePixelsMax,
      canvasMaxAreaInBytes: imagePixelsMax * 4,
      verbosity: 0,
    }).promise
    root.replaceChildren()
    await showPages(pdf, 1, firstPages)
  } catch (error) {
    say(problemOf(error), 'alert')
  }
}

/**
 * @param {PdfDocument} pdf
 * @param {number} from the number of a page
 * @param {number} count
 */
async function showPages(pdf, from, count) {
  const last = Math.min(pdf.numPages, pagesMax)
  const to = Math.min(last, from + count - 1)
  for (let number = from; number <= to; number += 1) {
    const label = `Page ${number} of ${pdf.numPages}`
    try {
      await showPage(await pdf.getPage(number), label)
    } catch {
      say(`${label} is damaged and cannot be shown.`, 'status')
    }
  }
  if (to < last) {
    const more = document.createElement('button')
    more.className = 'more'
    more.textContent = `Show pages ${to + 1} to ${Math.min(last, to + morePages)} of ${pdf.numPages}`
    more.addEventListener('click', () => {
      more.remove()
      root.focus()
      void showPages(pdf, to + 1, morePages)
    })
    root.append(more)
  } else if (last < pdf.numPages)
    say(`The first ${last} of ${pdf.numPages} pages are shown. Save the file to read all.`, 'status')
}

/**
 * @param {PdfPage} page
 * @param {string} label
 */
async function showPage(page, label) {
  const size = page.getViewport({ scale: 1 })
  const section = document.createElement('section')
  section.className = 'page'
  section.setAttribute('aria-label', label)
  const canvas = document.createElement('canvas')
  canvas.setAttribute('aria-hidden', 'true')
  section.append(canvas)
  root.append(section)
  const height = Math.min(size.height, size.width * ratioMax)
  const width = Math.min(size.width, size.height * ratioMax)
  const sharp = (section.clientWidth / width) * Math.min(devicePixelRatio, 2)
  const scale = Math.min(sharp, Math.sqrt(pixelsMax / (width * height)))
  canvas.width = Math.max(1, Math.floor(width * scale))
  canvas.height = Math.max(1, Math.floor(height * scale))
  const viewport = page.getViewport({ scale })
  await page.render({ canvas, viewport }).promise
  const layer = document.createElement('div')
  layer.className = 'textLayer'
  section.append(layer)
  const fit = () => layer.style.setProperty('--total-scale-factor', String(section.clientWidth / width))
  new ResizeObserver(fit).observe(section)
  fit()
  const text = await page.getTextContent()
  await new TextLayer({ textContentSource: text, container: layer, viewport: size }).render()
  page.cleanup()
}

/** @param {unknown} error */
function problemOf(error) {
  const name = error instanceof Error ? error.name : ''
  if (name === 'PasswordException')
    return 'The document is encrypted with a password. Save it to open it in another program.'
  if (name === 'InvalidPDFException')
    return 'The document is damaged or is not a PDF. Save it to examine it in another program.'
  return 'The document cannot be shown here. Save it to open it in another program.'
}

/**
 * @param {string} text
 * @param {'alert' | 'status'} role
 */
function say(text, role) {
  const line = document.createElement('p')
  line.setAttribute('role', role)
  line.textContent = text
  if (role === 'alert') root.replaceChildren(line)
  else root.append(line)
}
