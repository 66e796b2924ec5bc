import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expect, test } from 'vitest'
import { type LockedPackages, missingPackages, withPlatforms } from './lock-platforms.ts'

const root = path.join(import.meta.dirname, '..')
const lock = JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8')) as {
  packages: LockedPackages
}

test('the lock contains the packages of all platforms, as `npm ci` requires (npm run lock-platforms adds them)', () => {
  expect(missingPackages(lock.packages).map(({ name }) => name)).toEqual([])
})

test('every package from the registry for this platform has a checksum', () => {
  const packages = Object.entries(
    lock.packages as Record<string, { integrity?: string; optional?: true; link?: true }>,
  )
  const unchecked = packages
    .filter(([folder, { link }]) => folder.includes('node_modules/') && link !== true)
    .filter(([, { integrity, optional }]) => integrity === undefined && optional !== true)
  expect(unchecked.map(([folder]) => folder)).toEqual([])
})

test('npm ci accepts the lock in a clean folder', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'parley-lock-'))
  for (const name of ['package.json', 'package-lock.json'])
    await copyFile(path.join(root, name), path.join(folder, name))
  // This only checks the lock. It installs nothing and does not contact the registry.
  const flags = ['--dry-run', '--offline', '--ignore-scripts', '--no-audit', '--no-fund']
  const npm = spawnSync('npm', ['ci', ...flags], { cwd: folder, encoding: 'utf8', timeout: 60_000 })
  await rm(folder, { recursive: true, force: true })
  expect([npm.status, npm.stderr.match(/^npm error .*/gm) ?? []]).toEqual([0, []])
}, 60_000)

const lint = {
  version: '1.2.3',
  dev: true as const,
  optionalDependencies: { '@lint/linux-x64-musl': '1.2.3', '@lint/darwin-arm64': '1.2.3' },
}

test('adds missing platform packages by name, sorted as npm does, and keeps existing ones', () => {
  const there = { version: '1.2.3', optional: true as const }
  const packages = withPlatforms({
    '': {},
    'node_modules/lint': lint,
    'node_modules/lint/node_modules/@lint/darwin-arm64': there,
  })
  const entry = { version: '1.2.3', cpu: ['x64'], dev: true, libc: ['musl'], optional: true, os: ['linux'] }
  expect(packages['node_modules/@lint/linux-x64-musl']).toEqual(entry)
  expect(Object.keys(packages)).toEqual([
    '',
    'node_modules/@lint/linux-x64-musl',
    'node_modules/lint',
    'node_modules/lint/node_modules/@lint/darwin-arm64',
  ])
  expect(missingPackages(packages)).toEqual([])
})

test.each([
  ['a name without a platform', { odd: '1.0.0' }, /by hand/],
  ['a range of versions', { 'x-linux-x64': '^1.0.0' }, /npm install/],
])('%s is rejected', (_what, optionalDependencies, said) => {
  expect(() =>
    withPlatforms({ '': {}, 'node_modules/a': { version: '1.0.0', optionalDependencies } }),
  ).toThrow(said)
})
