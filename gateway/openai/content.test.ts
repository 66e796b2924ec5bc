import { expect, test } from 'vitest'
import { messageContent, partsOf, textOf } from './content.ts'

const parsed = (content: unknown) => messageContent.parse(content)

test('files by address and audio become files', () => {
  const parts = [
    { type: 'image_url', image_url: { url: 'https://images.example/a.png', detail: 'low' } },
    { type: 'input_file', file_url: 'https://files.example/a.pdf', filename: 'a.pdf' },
    { type: 'input_audio', input_audio: { data: 'AAAA', format: 'mp3' } },
  ]
  expect(partsOf(parsed(parts), 'messages[0].content')).toEqual([
    { kind: 'file', file: { uri: 'https://images.example/a.png' } },
    { kind: 'file', file: { name: 'a.pdf', uri: 'https://files.example/a.pdf' } },
    { kind: 'file', file: { mimeType: 'audio/mpeg', bytes: 'AAAA' } },
  ])
})

test('the text of an earlier message has placeholders for its files and images', () => {
  const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }
  const file = { type: 'file', file: { filename: 'a.csv', file_data: 'AAAA' } }
  expect(textOf(parsed([{ type: 'text', text: 'Look' }, image, file]))).toBe('Look\n[image]\n[a.csv]')
  expect(textOf('Here: ![chart](data:image/png;base64,AAAA) and [a](https://a.example)')).toBe(
    'Here: ![chart](image) and [a](https://a.example)',
  )
})
