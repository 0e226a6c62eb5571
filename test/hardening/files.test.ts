import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { needs } from '../requirements.ts'
import { sandboxForTest } from '../sandbox/start-sandbox.ts'
import { createServedWorld, type ServedWorld, type World } from '../stories/built-program.ts'
import { type Client, createClient, expectCalmFailure, filesBelow } from './in-process-client.ts'

/** Lists the relative paths of all files and directories below a directory. */
function below(root: string): string[] {
  return readdirSync(root, { recursive: true, encoding: 'utf8' }).toSorted()
}

/** Creates a session, a claim in the ledger, and a setting, so that every file exists. */
async function createEveryFile(world: ServedWorld): Promise<void> {
  for (const [words, code] of [
    [['config', 'set', 'http-timeout', '20'], 0],
    [['claims', 'create', 'example.com'], 0],
    [['auth', 'refresh'], 0],
  ] as const) {
    expect(await world.run(words)).toMatchObject({ code })
  }
}

function expectPrivate(world: World): void {
  for (const root of ['config', 'state']) {
    for (const name of ['', ...below(join(world.home, root))]) {
      const found = statSync(join(world.home, root, name))
      expect((found.mode & 0o777).toString(8), join(root, name)).toBe(found.isDirectory() ? '700' : '600')
    }
  }
}

describe.runIf(needs('posix'))('permissions', () => {
  test.each(['000', '0777'])(
    'under umask %s, the program creates directories with mode 0700 and files with 0600',
    async (umask) => {
      const world = await createServedWorld()
      const script = join(world.home, 'with-umask.mjs')
      writeFileSync(script, `process.umask(0o${umask})\n`)
      Object.assign(world.env, { NODE_OPTIONS: `--import file://${script}` })
      expect(await world.login()).toMatchObject({ code: 0 })
      await createEveryFile(world)
      expectPrivate(world)
    },
  )

  test('config and state files with mode 0644 get mode 0600 from the next command that writes them', async () => {
    const world = await createServedWorld()
    await world.login()
    await createEveryFile(world)
    for (const root of ['config', 'state']) {
      const path = join(world.home, root)
      for (const name of ['', ...below(path)]) {
        const found = lstatSync(join(path, name))
        if (found.isFile()) chmodSync(join(path, name), 0o644)
      }
      chmodSync(path, 0o755)
    }
    await world.login()
    await createEveryFile(world)
    expect(await world.run(['claims', 'create', 'other.example'])).toMatchObject({ code: 0 })
    const loose = ['config', 'state'].flatMap((root) =>
      below(join(world.home, root)).filter(
        (name) => (statSync(join(world.home, root, name)).mode & 0o077) !== 0,
      ),
    )
    expect(loose).toEqual([])
  })
})

/** Creates a signed-in client, and returns the paths of its configuration, session and ledger entry. */
async function clientWithFiles(): Promise<{ client: Client; files: Readonly<Record<string, string>> }> {
  const sandbox = await sandboxForTest()
  const client = createClient(sandbox)
  await client.signIn()
  expect(await client.run(['config', 'set', 'resolver', sandbox.dns])).toMatchObject({ code: 0 })
  expect(await client.run(['claims', 'create', 'example.com'])).toMatchObject({ code: 0 })
  const { config, state } = client.context.directories
  const one = (pattern: RegExp) => filesBelow(state).find((path) => pattern.test(path)) ?? ''
  return {
    client,
    files: {
      configuration: join(config, 'config.json'),
      session: one(/\/session\.json$/),
      'saved claim': one(/\/claims\/.*\.json$/),
    },
  }
}

/** For each file, a command that reads it, and the exit code if the file is unusable. */
const USERS: Readonly<Record<string, { words: readonly string[]; code: number; isOnlyWarning?: true }>> = {
  configuration: { words: ['imports', 'list'], code: 1 },
  session: { words: ['auth', 'refresh'], code: 4 },
  // A damaged saved claim is only a warning: `claims list` still shows the other claims.
  'saved claim': { words: ['claims', 'list'], code: 0, isOnlyWarning: true },
}
const DAMAGE: Readonly<Record<string, (text: string) => string | Buffer>> = {
  empty: () => '',
  'cut off': (text) => text.slice(0, 20),
  'of a later version': (text) => text.replace(/"(version|format)": ?\d+/, '"$1":99'),
  'another JSON': () => '[1,2,3]',
  binary: () => Buffer.from([0, 159, 146, 150, 27, 91, 50, 74]),
  huge: () => `{"version":1,"x":"${'x'.repeat(5_000_000)}"}`,
}

describe.runIf(needs('posix')).each(Object.keys(USERS))('damage to the %s', (what) => {
  const { words, code, isOnlyWarning } = USERS[what] ?? { words: [], code: 0 }

  test.each(Object.keys(DAMAGE))(
    `if the ${what} file is damaged (%s), a command names its path on stderr, and leaves it unchanged`,
    async (damage) => {
      const { client, files } = await clientWithFiles()
      const path = files[what] ?? ''
      const damaged = DAMAGE[damage]?.(readFileSync(path, 'utf8')) ?? ''
      const secrets = client.secrets()
      writeFileSync(path, damaged)
      const ran = await client.run(words)
      expect(ran.code, ran.stderr).toBe(code)
      expectCalmFailure(ran)
      for (const secret of secrets) expect(ran.stderr).not.toContain(secret)
      expect(ran.stderr).toContain(path)
      expect(Buffer.compare(readFileSync(path), Buffer.from(damaged))).toBe(0)
      if (!isOnlyWarning) expect(ran.stderr).toMatch(/hint: .*(move it away|mailclaim login)/)
    },
  )

  test(`a symbolic link in place of the ${what} file is ${what === 'configuration' ? 'followed' : 'not followed'}`, async () => {
    const { client, files } = await clientWithFiles()
    const path = files[what] ?? ''
    const elsewhere = join(client.context.directories.config, '..', 'elsewhere.json')
    const text = readFileSync(path, 'utf8')
    writeFileSync(elsewhere, text)
    rmSync(path)
    symlinkSync(elsewhere, path)
    const ran = await client.run(words)
    const isFollowed = what === 'configuration'
    expect(ran.code, ran.stderr).toBe(isFollowed ? 0 : code)
    if (!isFollowed) expect(ran.stderr).toContain('link')
    await client.run(['config', 'set', 'http-timeout', '21'])
    await client.signIn().catch(() => undefined)
    expect(readFileSync(elsewhere, 'utf8')).toEqual(isFollowed ? expect.stringContaining('"21"') : text)
    expect(lstatSync(path).isSymbolicLink()).toBe(isFollowed || what === 'saved claim')
  })

  test(`with a directory or another user's file in place of the ${what} file, a command exits ${code}`, async () => {
    const { client, files } = await clientWithFiles()
    const path = files[what] ?? ''
    const text = readFileSync(path)
    rmSync(path)
    mkdirSync(path)
    const directory = await client.run(words)
    expect(directory.code, directory.stderr).toBe(code)
    expectCalmFailure(directory)
    rmSync(path, { recursive: true })
    if (process.getuid?.() !== 0) return
    // The rest needs root, who alone can change the owner of a file.
    writeFileSync(path, text, { mode: 0o600 })
    chownSync(path, 65_534, 65_534)
    const foreign = await client.run(words)
    expect(foreign.code, foreign.stderr).toBe(code)
    expect(foreign.stderr).toContain('belongs to another user')
  })
})

describe.runIf(needs('posix'))('a directory', () => {
  test.each([
    ['is a dangling link', (path: string) => symlinkSync(join(path, '..', 'nowhere'), path)],
    ['is a file', (path: string) => writeFileSync(path, '')],
  ])('the error for a config or state directory that %s names the path', async (_what, plant) => {
    const sandbox = await sandboxForTest({ autoApprove: true })
    for (const which of ['config', 'state'] as const) {
      const client = createClient(sandbox)
      plant(client.context.directories[which])
      const words =
        which === 'config' ? ['config', 'set', 'http-timeout', '5'] : ['login', '--timeout', '3600']
      const ran = await client.run(words)
      expect(ran.code, ran.stderr).toBe(1)
      expect(ran.stderr).toContain(client.context.directories[which])
      expect(ran.stderr).not.toContain('this is a bug')
    }
  })

  test.runIf(needs('root'))('login stores no secret in a state directory of another user', async () => {
    const sandbox = await sandboxForTest({ autoApprove: true })
    const client = createClient(sandbox)
    const { state } = client.context.directories
    mkdirSync(state, { recursive: true })
    chownSync(state, 65_534, 65_534)
    const ran = await client.run(['login', '--timeout', '3600'])
    expect(ran.code).toBe(1)
    expect(ran.stderr).toContain('belongs to another user')
    expect(readdirSync(state)).toEqual([])
  })

  test('login exits 1 on a dangling symbolic link in place of the profile directory, and does not create its target', async () => {
    const sandbox = await sandboxForTest({ autoApprove: true })
    const client = createClient(sandbox)
    const { state } = client.context.directories
    const trap = join(state, '..', 'trap')
    mkdirSync(trap)
    mkdirSync(join(state, 'profiles'), { recursive: true })
    symlinkSync(join(trap, 'missing'), join(state, 'profiles', 'default'))
    const ran = await client.run(['login', '--timeout', '3600'])
    expect(ran.code, ran.stderr).toBe(1)
    expect(readdirSync(trap)).toEqual([])
    expect(existsSync(join(trap, 'missing'))).toBe(false)
  })
})
