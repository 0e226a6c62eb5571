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
  const keep = (digit: string, key: string, cluster: string | null) => {
    const path = join(directory, `pending.fleet.${digit.repeat(32)}.json`)
    writeFileSync(path, pendingFormat.text({ key, cluster, writer: digit, revision: 'any', sealed: 'x' }))
    return path
  }
  const own = keep('1', '/a/sessions/fleet', '11')
  keep('2', '/b/sessions/fleet', '11')
  const elsewhere = keep('3', '/a/sessions/fleet', '22')
  const unknown = keep('4', '/a/sessions/fleet', null)
  const truncated = join(directory, `pending.fleet.${'5'.repeat(32)}.json`)
  writeFileSync(truncated, '{"version":1,"ke')
  const vault = {
    paths: { directory, fallbackDirectories: [], profile: 'fleet' },
    access: { key: '/a/sessions/fleet' },
  } as unknown as SharedVault
  expect(pendingFiles(vault, '11').sort()).toEqual([own, unknown])
  expect(pendingFiles(vault).sort()).toEqual([own, elsewhere, unknown, truncated])
})
