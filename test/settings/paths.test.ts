import { execFileSync } from 'node:child_process'
import { chmodSync, cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { resolveDirectories } from '../../src/settings/paths.ts'
import { needs } from '../requirements.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

describe('the directories of the platform', () => {
  const linux = (env: Record<string, string>) => resolveDirectories({ env, platform: 'linux' })

  it('the directories of mailclaim on Linux follow the XDG Base Directory Specification', () => {
    expect(linux({ XDG_CONFIG_HOME: '/c', XDG_STATE_HOME: '/s' })).toEqual({
      config: '/c/mailclaim',
      state: '/s/mailclaim',
    })
    expect(linux({}).config).toMatch(/\/\.config\/mailclaim$/)
    expect(linux({ XDG_STATE_HOME: '' }).state).toMatch(/\/\.local\/state\/mailclaim$/)
  })

  it('the directories of mailclaim are in Library on macOS, and in APPDATA and LOCALAPPDATA on Windows', () => {
    expect(resolveDirectories({ env: {}, platform: 'darwin' })).toEqual({
      config: expect.stringMatching(/\/Library\/Preferences\/mailclaim$/),
      state: expect.stringMatching(/\/Library\/Application Support\/mailclaim$/),
    })
    const env = { APPDATA: '/roaming', LOCALAPPDATA: '/local' }
    const { config, state } = resolveDirectories({ env, platform: 'win32' })
    expect([config, state]).toEqual(['/roaming/mailclaim/Config', '/local/mailclaim/Data'])
  })
})

it.runIf(needs('root'))(
  'a user without HOME and without a passwd entry can use an API key, whether or not the directories are set',
  () => {
    const env = { MAILCLAIM_CONFIG_DIR: '/nonexistent/c', MAILCLAIM_STATE_DIR: '/nonexistent/s' }
    // Copy the program: the repository may be in a directory that only root can enter.
    const copy = mkdtempSync(join(tmpdir(), 'mailclaim-copy-'))
    onTestFinished(() => rmSync(copy, { recursive: true, force: true }))
    chmodSync(copy, 0o755)
    for (const part of ['bin', 'dist', 'package.json'])
      cpSync(join(ROOT, part), join(copy, part), { recursive: true })
    const run = (words: string[], more = {}) =>
      execFileSync(process.execPath, [join(copy, 'bin', 'mailclaim.js'), ...words], {
        env: { ...env, ...more },
        uid: 54_321,
        encoding: 'utf8',
      })
    expect(run(['--version'])).toMatch(/^\d+\.\d+\.\d+\n$/)
    for (const more of [{}, { MAILCLAIM_CONFIG_DIR: '', MAILCLAIM_STATE_DIR: '' }])
      expect(run(['auth', 'token'], { MAILCLAIM_API_KEY: 'key-1', ...more })).toBe('key-1\n')
  },
)
