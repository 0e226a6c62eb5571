import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, posix } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { runInNewContext } from 'node:vm'
import { transform } from 'esbuild'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { needs } from './requirements.ts'

interface Job {
  readonly needs?: string | readonly string[]
  readonly uses?: string
  readonly permissions?: Readonly<Record<string, string>>
  readonly steps?: readonly { readonly run?: string; readonly uses?: string }[]
}

const root = new URL('../', import.meta.url)
const UNREACHABLE = 'http://127.0.0.1:9'
const read = (path: string) => readFileSync(new URL(path, root), 'utf8')
const manifest = JSON.parse(read('package.json')) as {
  version: string
  scripts: Record<string, string>
} & Record<'engines' | 'devDependencies', Record<string, string>>

/** Paths that the npm package may contain. */
const MAY_BE =
  /^(package\.json|[A-Z]+(\.md)?|bin\/[\w.]+|dist\/[\w.-]+|dist\/native\/[\w-]+\/[\w.-]+|docs\/[\w-]+\.(md|svg)|docs\/schemas\/[\w-]+\.json)$/

test.runIf(needs('posix'))(
  'the npm package contains the program, licenses and documents, and no other files',
  () => {
    // Skip the package's scripts, which would build the program again.
    const packed = JSON.parse(
      execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
        cwd: root,
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      }),
    ) as { files: { path: string }[]; size: number }[]
    const files = packed[0]?.files.map(({ path }) => path) ?? []
    for (const needed of ['LICENSE', 'bin/mailclaim.js', 'dist/main.js', 'dist/THIRD-PARTY-NOTICES.txt'])
      expect(files).toContain(needed)
    // Expect the native modules for locks and keychain, for every supported system.
    const addons = ['darwin', 'linux', 'win32'].flatMap((system) =>
      ['arm64', 'x64'].flatMap((kind) =>
        ['fs-native-extensions', 'keytar'].map((name) => `dist/native/${system}-${kind}/${name}.node`),
      ),
    )
    expect(files.filter((path) => path.startsWith('dist/native/')).sort()).toEqual(addons)
    expect(read('dist/THIRD-PARTY-NOTICES.txt')).toMatch(/^@github\/keytar [\d.]+ \(MIT\)$/m)
    expect(packed[0]?.size).toBeLessThan(1_500_000)
    expect(files.filter((path) => !MAY_BE.test(path))).toEqual([])
    const links = files
      .filter((path) => path.endsWith('.md'))
      .flatMap((path) =>
        [...read(path).matchAll(/\]\((?!https?:|#|\.\.\/src\/)([^)#\s]+)/g)].map(([, link = '']) =>
          posix.join(posix.dirname(path), link),
        ),
      )
    expect(links.length).toBeGreaterThan(20)
    expect(links.filter((link) => !files.includes(link))).toEqual([])
  },
)

test('the npm package has no install script, and no dependencies except pinned development dependencies', () => {
  expect(Object.keys(manifest.scripts).filter((name) => /^(pre|post)?install$/.test(name))).toEqual([])
  expect(Object.keys(manifest).filter((name) => /dependencies$/i.test(name))).toEqual(['devDependencies'])
  for (const [name, range] of Object.entries(manifest.devDependencies))
    expect(range, name).toMatch(/^(npm:@[\w/-]+@)?\d+\.\d+\.\d+(-[\w.]+)?$/)
})

describe('the check of the Node version', () => {
  const shim = read('bin/mailclaim.js')

  test.each<[string, Record<string, string>]>([
    ['Node 12.22.12', { node: '12.22.12' }],
    ['Node 20.18.3', { node: '20.18.3' }],
    ['Node 21.7.3', { node: '21.7.3' }],
    ['Node 22.2.0', { node: '22.2.0' }],
    ['bun 1.4.5', { node: '26.3.0', bun: '1.4.5' }],
    ['deno 2.9.6', { node: '26.3.0', deno: '2.9.6' }],
    ['', { node: '20.19.0' }],
    ['', { node: '22.3.0' }],
    ['', { node: '23.0.0' }],
  ])('bin/mailclaim.js runs on a supported Node, and else prints an error: %s %j', (found, versions) => {
    let [loaded, said] = ['', '']
    const require = (path: string) => {
      loaded = path
      return { main: async () => 0 }
    }
    const fake = { versions, env: {}, stderr: { write: (text: string) => (said += text) }, exitCode: 0 }
    runInNewContext(shim, { require, process: { ...process, ...fake, exit: () => {} } })
    const refusal = `error: mailclaim needs Node 20.19 or 22.3, or later: this is ${found}\nhint: get Node from `
    expect([said.slice(0, refusal.length), loaded]).toEqual(
      found === '' ? ['', '../dist/main.js'] : [refusal, ''],
    )
    expect(manifest.engines).toEqual({ node: '^20.19.0 || >=22.3.0' })
  })

  test('bin/mailclaim.js uses only syntax of Node 12, so that an old Node can print which version is needed', async () => {
    const older = await transform(shim, { target: 'node12' })
    expect(older.code).toBe((await transform(shim, { target: 'esnext' })).code)
  })
})

test('the changelog has a section for the version of package.json', () => {
  expect(read('CHANGELOG.md')).toContain(`\n## ${manifest.version} `)
})

describe('the workflows', () => {
  test.each(readdirSync(new URL('.github/workflows/', root)))(
    'the workflow %s pins every action, and has read-only permissions by default',
    (name) => {
      const workflow = read(`.github/workflows/${name}`)
      for (const [, action] of workflow.matchAll(/uses: (\S+)/g))
        expect(action).toMatch(/^([\w-]+\/[\w-]+@[0-9a-f]{40}|\.\/(\.github\/workflows\/\w+\.yml)?)$/)
      expect((parse(workflow) as Job).permissions).toEqual({ contents: 'read' })
      expect(workflow).not.toMatch(/pull_request_target|secrets\./)
    },
  )

  const { jobs } = parse(read('.github/workflows/release.yml')) as { jobs: Record<string, Job> }
  const commandsOf = (name: string) => (jobs[name]?.steps ?? []).flatMap(({ run }) => run ?? [])

  test('the release workflow publishes only after the release check, all tests and every archive have passed', () => {
    expect(Object.entries(jobs).map(([name, { needs: before }]) => [name, before])).toEqual([
      ['guards', undefined],
      ['prove', 'guards'],
      ['archives', 'guards'],
      ['package', 'guards'],
      ['publish', ['prove', 'archives', 'package']],
      ['release', 'publish'],
    ])
    expect(jobs['prove']?.uses).toBe('./.github/workflows/ci.yml')
    expect(read('.github/workflows/ci.yml')).toContain('run: npm audit --audit-level=low')
    expect(commandsOf('guards')).toEqual(['node scripts/release.mjs check "$GITHUB_REF_NAME"'])
    expect(commandsOf('archives').at(-1)).toBe('npm run try-archive')
  })

  test('in the release workflow, only the jobs publish and release have permissions to write', () => {
    expect(
      Object.entries(jobs).flatMap(([name, { permissions }]) => (permissions ? [[name, permissions]] : [])),
    ).toEqual([
      ['publish', { contents: 'read', 'id-token': 'write' }],
      ['release', { contents: 'write', 'id-token': 'write', attestations: 'write' }],
    ])
    expect(commandsOf('publish')).toEqual([
      'echo "$SHA256" | sha256sum --check --strict',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: a shell's expansion
      'npm publish "./${SHA256##* }" --ignore-scripts --provenance --access public',
    ])
    expect(jobs['publish']?.steps?.flatMap(({ uses = [] }) => uses).join()).not.toContain('checkout')
    expect(commandsOf('release').join()).not.toContain('npm')
  })

  test.runIf(needs('posix', 'bash', 'sha256sum'))(
    'the job publish passes the tarball that the job package packed to npm, and no other bytes',
    () => {
      const home = mkdtempSync(join(tmpdir(), 'mailclaim-publish-'))
      onTestFinished(() => rmSync(home, { recursive: true }))
      writeFileSync(
        join(home, 'npm'),
        '#!/bin/sh\ncase $1 in pack) echo new >"$4/mailclaim-1.2.3.tgz" ;; esac\necho "$@" >>"$HOME/log"\n',
        { mode: 0o755 },
      )
      const env: NodeJS.ProcessEnv = {
        PATH: `${home}:${process.env['PATH']}`,
        HOME: home,
        GITHUB_OUTPUT: join(home, 'output'),
      }
      const runsAll = (cwd: string, job: string) =>
        commandsOf(job).every((step) => spawnSync('bash', ['-ec', step], { cwd, env }).status === 0)
      expect(runsAll(home, 'package')).toBe(true)
      env['SHA256'] = readFileSync(join(home, 'output'), 'utf8').trim().replace('sha256=', '')
      expect(runsAll(join(home, 'package'), 'publish')).toBe(true)
      const log = readFileSync(join(home, 'log'), 'utf8').trim().split('\n')
      expect(log.slice(-2)).toEqual([
        'run try-package -- package/mailclaim-1.2.3.tgz',
        expect.stringMatching(/^publish \.\/mailclaim-1\.2\.3\.tgz /),
      ])
      writeFileSync(join(home, 'package/mailclaim-1.2.3.tgz'), 'other')
      expect(runsAll(join(home, 'package'), 'publish')).toBe(false)
    },
  )
})

describe.runIf(needs('posix'))('scripts/release.mjs', () => {
  const script = fileURLToPath(new URL('scripts/release.mjs', root))

  /**
   * Creates a repository of version 1.2.3 with the owner `own` and these fields of package.json. If the owner is the placeholder
   * OWNER, the files other than package.json and CHANGELOG.md still name version 1.2.2.
   */
  function clone(own: string, date: string, fields: object) {
    const directory = mkdtempSync(join(tmpdir(), 'mailclaim-release-'))
    onTestFinished(() => rmSync(directory, { recursive: true }))
    mkdirSync(join(directory, 'docs'))
    for (const file of ['install.sh', 'install.ps1', 'README.md', 'package-lock.json', 'docs/scripting.md']) {
      const text = read(file).replaceAll('OWNER/', `${own}/`)
      const version = own === 'OWNER' ? '1.2.2' : '1.2.3'
      writeFileSync(join(directory, file), text.replaceAll(manifest.version, version))
    }
    writeFileSync(
      join(directory, 'package.json'),
      JSON.stringify({ ...manifest, version: '1.2.3', ...fields }),
    )
    const sections = `## 1.2.3 ${date}\n\n- New.\n\n## 1.2.2 - 2025-01-01\n\n- Old.\n`
    writeFileSync(join(directory, 'CHANGELOG.md'), `# Changelog\n\n${sections}`)
    return directory
  }

  async function run(directory: string, words: readonly string[], registry = UNREACHABLE) {
    const npm = { npm_config_registry: registry, npm_config_fetch_retries: '0' }
    const env = { PATH: process.env['PATH'], HOME: directory, ...npm }
    const child = spawn(process.execPath, [script, ...words], { cwd: directory, env })
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)])
    return { stdout, stderr }
  }

  async function serveVersions(versions: readonly string[]) {
    const server = createServer((_request, response) => {
      const known = Object.fromEntries(versions.map((version) => [version, { name: 'mailclaim', version }]))
      response.statusCode = versions.length === 0 ? 404 : 200
      response.end(
        JSON.stringify({ name: 'mailclaim', 'dist-tags': { latest: versions[0] }, versions: known }),
      )
    })
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
    onTestFinished(() => void server.close())
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  test('release.mjs check accepts a complete repository, and lists everything that an incomplete one lacks', async () => {
    const own = 'https://github.com/someone/mailclaim'
    const fields = { repository: { url: `git+${own}.git` }, bugs: `${own}/issues`, homepage: own }
    for (const repository of [fields.repository, own, 'github:someone/mailclaim']) {
      const directory = clone('someone', '- 2026-01-01', { ...fields, repository })
      const whole = await run(directory, ['check', 'v1.2.3'], await serveVersions(['1.2.2']))
      expect(whole.stderr).toBe('')
    }

    const lacking = await run(
      clone('OWNER', '(unreleased)', {}),
      ['check', 'v1.2.4'],
      await serveVersions([]),
    )
    expect(lacking.stderr.trim().split('\n')).toEqual([
      'the tag is v1.2.4, and the version of package.json 1.2.3',
      'CHANGELOG.md has no line "## 1.2.3 - DATE"',
      ...['bugs', 'homepage'].map((field) => `package.json has no "${field}"`),
      'package.json has no "repository" of the form https://github.com/OWNER/NAME',
      ...['install.sh', 'install.ps1', 'README.md'].map((file) =>
        expect.stringContaining(`${file} isn't for`),
      ),
      'package-lock.json has another version: run npm install --package-lock-only',
      ...['mailclaim@', 'OWNER/mailclaim@v'].map(
        (start) => `docs/scripting.md has ${start}1.2.2, and not this release`,
      ),
      'npm has no package mailclaim: a person publishes it once',
    ])
    const again = await run(
      clone('someone', '- 2026-01-01', fields),
      ['check', 'v1.2.3'],
      await serveVersions(['1.2.3', '1.2.2']),
    )
    expect(again.stderr).toBe('npm has mailclaim 1.2.3 already\n')
    const offline = await run(clone('someone', '- 2026-01-01', fields), ['check', 'v1.2.3'])
    expect(offline.stderr).toMatch(
      /^npm view mailclaim versions --json failed: npm error .*ECONNREFUSED.*\n$/,
    )
  })

  test('release.mjs assemble verifies the archives, adds installers and SBOM, and prints the release notes', async () => {
    const directory = clone('someone', '- 2026-01-01', {})
    const archive = (platform: string, extension: string, content: string) => {
      const name = `mailclaim-1.2.3-${platform}.${extension}`
      mkdirSync(join(directory, 'from', platform), { recursive: true })
      writeFileSync(join(directory, 'from', platform, name), content)
      writeFileSync(
        join(directory, 'from', platform, 'SHA256SUMS'),
        `${sha256(Buffer.from(platform))}  ${name}\n`,
      )
    }
    for (const platform of ['linux-x64', 'linux-arm64', 'darwin-x64', 'darwin-arm64'])
      archive(platform, 'tar.gz', platform)
    expect((await run(directory, ['assemble', 'from', 'one'])).stderr).toContain('no archive for win32-x64')
    archive('win32-x64', 'zip', 'something else')
    expect((await run(directory, ['assemble', 'from', 'two'])).stderr).toContain('has another checksum')
    archive('win32-x64', 'zip', 'win32-x64')
    expect(await run(directory, ['assemble', 'from', 'to'])).toEqual({ stdout: '- New.\n', stderr: '' })

    const lines = readFileSync(join(directory, 'to/SHA256SUMS'), 'utf8').trim().split('\n')
    expect(lines).toHaveLength(8)
    expect(readdirSync(join(directory, 'to'))).toHaveLength(9)
    for (const line of lines) {
      const [sum, name = ''] = line.split('  ')
      expect(sha256(readFileSync(join(directory, 'to', name))), name).toBe(sum)
    }
    const sbom = JSON.parse(readFileSync(join(directory, 'to/mailclaim-1.2.3.cdx.json'), 'utf8'))
    expect(sbom.components.map(({ name }: { name: string }) => name)).toContain('commander')
  })
})

describe.runIf(needs('posix'))('a script that lacks something', () => {
  const bare = mkdtempSync(join(tmpdir(), 'mailclaim-bare-'))
  afterAll(() => rmSync(bare, { recursive: true }))
  // Create a tree without dist/, node_modules/ and documents.
  beforeAll(() => {
    for (const part of ['bench', 'scripts', 'package.json'])
      cpSync(new URL(part, root), join(bare, part), { recursive: true })
    writeFileSync(join(bare, 'package-lock.json'), '{ "version"')
  })
  const npm = { npm_config_registry: UNREACHABLE, npm_config_fetch_retries: '0' }

  test.each<[string, RegExp, NodeJS.ProcessEnv?]>([
    ['scripts/archive.mjs', /^dist\/ is missing: run npm run build$/],
    ['scripts/build.mjs', /^Cannot find package 'esbuild': run npm ci$/],
    ['scripts/check-house.mjs', /^ENOENT: .*architecture\.md'$/],
    ['scripts/demo.mjs nowhere.js', /nowhere\.js --version failed: Error: Cannot find module/],
    ['scripts/demo.mjs scripts/archive.mjs', /archive\.mjs --version failed: Unknown option '--version'$/],
    ['scripts/try-package.mjs a.tgz', /^ENOENT: .*mkdtemp '\/nowhere/, { TMPDIR: '/nowhere' }],
    ['scripts/generate-docs.mjs --chekc', /^Unknown option '--chekc'$/],
    ['scripts/release.mjs assemble archives', /^expected: check TAG, or assemble FROM TO$/],
    ['scripts/release.mjs check v1.2.3', /^ENOENT: .*CHANGELOG\.md'$/],
    ['scripts/try-archive.mjs', /^archives\/ has no archive: run npm run archive$/],
    ['scripts/try-package.mjs', /^npm pack .* failed: Cannot find package 'esbuild': run npm ci$/],
    ['scripts/try-package.mjs a.tgz', /^npm pack .* failed: npm error enoent ENOENT: .*a\.tgz'$/],
    ['scripts/try-package.mjs a.tgz', /^can't start npm: ENOENT$/, { PATH: '/nowhere' }],
    ['bench/bench.mjs --node', /^Option '--node <value>' argument missing$/],
  ])('%s exits with 1 and the one-line error %s', (line, sentence, env = {}) => {
    const { status, stderr } = spawnSync(process.execPath, line.split(' '), {
      cwd: bare,
      env: { ...process.env, ...npm, ...env },
      encoding: 'utf8',
    })
    expect({ status, stderr: stderr.trimEnd() }).toEqual({
      status: 1,
      stderr: expect.stringMatching(sentence),
    })
    expect(stderr.trimEnd()).not.toContain('\n')
  })

  test('`sentenceOf` returns the stack of a programming error, and the cause of a failed fetch', async () => {
    const { sentenceOf } = await import(fileURLToPath(new URL('scripts/begin.mjs', root)))
    expect(sentenceOf(new TypeError('x is not a function'))).toMatch(/\n {4}at /)
    expect(sentenceOf(new TypeError('fetch failed', { cause: new Error('ECONNREFUSED') }))).toBe(
      'ECONNREFUSED',
    )
  })
})

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}
