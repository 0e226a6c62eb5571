import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, posix } from 'node:path'
import { runInNewContext } from 'node:vm'
import { transform } from 'esbuild'
import { describe, expect, test } from 'vitest'
import { needs } from './requirements.ts'

const root = new URL('../', import.meta.url)
const read = (path: string) => readFileSync(new URL(path, root), 'utf8')
const manifest = JSON.parse(read('package.json')) as {
  version: string
  scripts: Record<string, string>
} & Record<'engines' | 'devDependencies', Record<string, string>>

/** What may be in the package, besides what is needed. */
const MAY_BE =
  /^(package\.json|[A-Z]+(\.md)?|bin\/[\w.]+|dist\/[\w.-]+|dist\/native\/[\w-]+\/[\w.-]+|docs\/[\w-]+\.(md|svg)|docs\/schemas\/[\w-]+\.json)$/

test.runIf(needs('posix'))(
  'the package is the program, its licenses and what people read, and each link leads to one of these',
  () => {
    // Without scripts: the program has been built for the tests already.
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
    // Locks and keychain of every system that the program runs on, in one native module each.
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
        [...read(path).matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)].map(([, link = '']) =>
          posix.join(posix.dirname(path), link),
        ),
      )
    expect(links.length).toBeGreaterThan(20)
    expect(links.filter((link) => !files.includes(link))).toEqual([])
  },
)

test('the package runs nothing when it is installed, needs no other, and pins what it is made of', () => {
  expect(Object.keys(manifest.scripts).filter((name) => /^(pre|post)?install$/.test(name))).toEqual([])
  expect(Object.keys(manifest).filter((name) => /dependencies$/i.test(name))).toEqual(['devDependencies'])
  for (const [name, range] of Object.entries(manifest.devDependencies))
    expect(range, name).toMatch(/^(npm:@[\w/-]+@)?\d+\.\d+\.\d+(-[\w.]+)?$/)
})

describe('the runtime', () => {
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
  ])('which runs the program or is refused in one sentence: %s %j', (found, versions) => {
    let [loaded, said] = ['', '']
    const require = (path: string) => {
      loaded = path
      return { main: async () => 0 }
    }
    const fake = { versions, env: {}, stderr: { write: (text: string) => (said += text) }, exitCode: 0 }
    runInNewContext(shim, { require, process: { ...process, ...fake, exit: () => {} } })
    const refusal = `error: mailclaim needs Node 20.19 or 22.3, or later: this is ${found}\n`
    expect([said, loaded]).toEqual(found === '' ? ['', '../dist/main.js'] : [refusal, ''])
    expect(manifest.engines).toEqual({ node: '^20.19.0 || >=22.3.0' })
  })

  test('even Node 12 reads the file that says so', async () => {
    const older = await transform(shim, { target: 'node12' })
    expect(older.code).toBe((await transform(shim, { target: 'esnext' })).code)
  })
})

test('the version has an entry in the changelog', () => {
  expect(read('CHANGELOG.md')).toContain(`\n## ${manifest.version} `)
})

describe('the workflows', () => {
  test.each(readdirSync(new URL('.github/workflows/', root)))(
    '%s pins every action, and by default may only read',
    (name) => {
      const text = read(`.github/workflows/${name}`)
      for (const [, action] of text.matchAll(/uses: (\S+)/g))
        expect(action).toMatch(/^([\w-]+\/[\w-]+@[0-9a-f]{40}|\.\/(\.github\/workflows\/\w+\.yml)?)$/)
      expect(text).toMatch(/^permissions:\n {2}contents: read$/m)
      expect(text).not.toMatch(/pull_request_target|secrets\./)
    },
  )

  const release = read('.github/workflows/release.yml')
  const [, publish = ''] = release.split(/^ {2}publish:$/m)

  test('a release waits for every test and an audit, and runs no script of a package where it may publish', () => {
    expect(publish).toContain('needs: prove')
    expect(release).toMatch(/^ {2}prove:\n {4}uses: \.\/\.github\/workflows\/ci\.yml$/m)
    expect(read('.github/workflows/ci.yml')).toContain('run: npm audit --audit-level=low')
    expect(release.match(/id-token/g)).toHaveLength(1)
    const commands = [...publish.matchAll(/run: (npm .+)$/gm)].map((match) => match[1])
    expect(commands).toEqual([
      'npm ci --ignore-scripts',
      'npm run build',
      'npm publish --ignore-scripts --provenance --access public',
    ])
  })

  test.runIf(needs('posix'))('a release stops unless the package names its repository and its issues', () => {
    const check = /run: (node -e .+)$/m.exec(publish)?.[1] ?? ''
    const directory = mkdtempSync(join(tmpdir(), 'mailclaim-release-'))
    const complete = { repository: 'r', bugs: 'b', homepage: 'h' }
    const status = (fields: object) => {
      writeFileSync(join(directory, 'package.json'), JSON.stringify(fields))
      return spawnSync('sh', ['-c', check], { cwd: directory }).status
    }
    expect(status(complete)).toBe(0)
    expect(status({ ...complete, bugs: undefined })).toBe(1)
    rmSync(directory, { recursive: true })
  })
})
