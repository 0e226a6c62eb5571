import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { pendingFiles } from '../../src/session/shared/pending.ts'
import type { SharedVault } from '../../src/session/shared/vault.ts'
import { pendingFormat } from '../../src/storage/file-formats.ts'

it('a kept refresh token of another prefix or cluster is not taken for that of the same profile name', () => {
  const directory = mkdtempSync(join(tmpdir(), 'mailclaim-pending-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  const keep = (digit: string, key: string, cluster: string) => {
    const writer = digit.repeat(32)
    const path = join(directory, `pending.fleet.${writer}.json`)
    const about = { key, cluster, session: '0123456789ab', generation: 2, writer, revision: 'any' }
    writeFileSync(path, pendingFormat.text({ ...about, sealed: 'x' }))
    return path
  }
  const own = keep('1', '/a/sessions/fleet', '11')
  keep('2', '/b/sessions/fleet', '11')
  const elsewhere = keep('3', '/a/sessions/fleet', '22')
  const truncated = join(directory, `pending.fleet.${'4'.repeat(32)}.json`)
  writeFileSync(truncated, '{"version":1,"ke')
  const vault = {
    paths: { directory, fallbackDirectories: [], profile: 'fleet' },
    access: { key: '/a/sessions/fleet' },
  } as unknown as SharedVault
  const kept = () => pendingFiles(vault).sort((a, b) => a.path.localeCompare(b.path))
  expect(kept()).toEqual([
    { path: own, cluster: '11' },
    { path: elsewhere, cluster: '22' },
    { path: truncated, cluster: undefined },
  ])
})
