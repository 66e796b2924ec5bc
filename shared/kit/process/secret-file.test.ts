import { chmod, chown, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ExposedSecretFile, readSecretFile } from './secret-file.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'parley-secrets-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

async function fileOf(mode: number): Promise<string> {
  const file = path.join(folder, `${mode.toString(8)}.key`)
  await writeFile(file, 'SEKRET')
  await chmod(file, mode)
  return file
}

test.each([0o600, 0o400, 0o700])('mode %o: the text is returned', async (mode) => {
  expect(await readSecretFile(await fileOf(mode))).toBe('SEKRET')
})

test.each([0o644, 0o640, 0o604, 0o620, 0o602, 0o666])(
  'mode %o: rejected with the chmod command to run, and without the content of the file',
  async (mode) => {
    const file = await fileOf(mode)
    const error = (await readSecretFile(file).catch((thrown: unknown) => thrown)) as Error
    expect(error).toBeInstanceOf(ExposedSecretFile)
    expect(error.message).toContain(`mode 0${mode.toString(8)}`)
    expect(error.message).toContain(`Run "chmod 600 ${file}"`)
    expect(error.message).not.toContain('SEKRET')
  },
)

test('a folder in place of the file is reported as such', async () => {
  await expect(readSecretFile(folder)).rejects.toThrow(`${folder} is a folder.`)
})

test('a missing file is reported as ENOENT', async () => {
  await expect(readSecretFile(path.join(folder, 'none'))).rejects.toMatchObject({ code: 'ENOENT' })
})

test('a file owned by another user, such as a mounted secret, may be readable only by its group', async () => {
  // Only root can change the owner of a file.
  if (process.getuid?.() !== 0) return
  const mounted = await fileOf(0o440)
  await chown(mounted, 12_345, 0)
  expect(await readSecretFile(mounted)).toBe('SEKRET')
  const open = await fileOf(0o444)
  await chown(open, 12_345, 0)
  await expect(readSecretFile(open)).rejects.toThrow(ExposedSecretFile)
})
