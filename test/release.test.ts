import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, posix } from 'node:path'
import { describe, expect, test } from 'vitest'
import { needs } from './requirements.ts'

const root = new URL('../', import.meta.url)
const read = (path: string) => readFileSync(new URL(path, root), 'utf8')
const manifest = JSON.parse(read('package.json')) as {
  version: string
  scripts: Record<string, string>
} & Record<'dependencies' | 'optionalDependencies' | 'devDependencies', Record<string, string>>

describe('what is published', () => {
  test.runIf(needs('posix'))(
    'the package is the program, its license and what people read, and nothing else',
    () => {
      // Without scripts: the program has been built for the tests already.
      const packed = JSON.parse(
        execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
          cwd: root,
          encoding: 'utf8',
          stdio: ['ignore', 'pipe', 'ignore'],
        }),
      ) as { files: { path: string; mode: number }[] }[]
      const files = packed[0]?.files.map(({ path }) => path) ?? []
      for (const needed of [
        'package.json',
        'README.md',
        'LICENSE',
        'CHANGELOG.md',
        'AGENTS.md',
        'docs/schemas/command-list.json',
        'docs/schemas/error.json',
        'bin/mailclaim.js',
        'bin/package.json',
        'dist/package.json',
        'dist/main.js',
        'dist/keychain-helper.js',
        'dist/THIRD-PARTY-NOTICES.txt',
        'dist/sbom.cdx.json',
      ]) {
        expect(files).toContain(needed)
      }
      // The locks of every system that the program runs on, in one native module each.
      expect(files.filter((path) => path.startsWith('dist/native/')).length).toBeGreaterThan(4)
      const strangers = files.filter(
        (path) =>
          !/^(package\.json|[A-Z_-]+(\.md|\.txt)?|bin\/mailclaim\.js|(bin|dist)\/package\.json|dist\/[\w-]+\.js(\.map)?|dist\/native\/[\w-]+\/[\w.-]+|dist\/THIRD-PARTY-NOTICES\.txt|dist\/sbom\.cdx\.json|docs\/[\w-]+\.(md|svg)|docs\/schemas\/[\w-]+\.json|man\/[\w./-]+\.\d)$/.test(
            path,
          ),
      )
      expect(strangers).toEqual([])
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

  test('the package runs nothing when it is installed', () => {
    expect(Object.keys(manifest.scripts).filter((name) => /^(pre|post)?install$/.test(name))).toEqual([])
  })

  test('the package installs only native packages, and every package is pinned exactly', () => {
    expect(Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies }).toSorted()).toEqual([
      'keytar',
    ])
    for (const [name, range] of Object.entries({
      ...manifest.dependencies,
      ...manifest.optionalDependencies,
      ...manifest.devDependencies,
    })) {
      expect(range, name).toMatch(/^(npm:@[\w/-]+@)?\d+\.\d+\.\d+(-[\w.]+)?$/)
    }
  })

  test('the version has an entry in the changelog', () => {
    expect(read('CHANGELOG.md')).toMatch(new RegExp(`^## ${manifest.version.replaceAll('.', '\\.')} `, 'm'))
  })
})

describe('the workflows', () => {
  const directory = new URL('.github/workflows/', root)
  test.each(readdirSync(directory))('%s pins every action, and by default may only read', (name) => {
    const text = readFileSync(new URL(name, directory), 'utf8')
    const actions = [...text.matchAll(/uses: (\S+)/g)].map((match) => match[1])
    expect(actions.length).toBeGreaterThan(0)
    for (const action of actions)
      expect(action).toMatch(/^([\w-]+\/[\w-]+@[0-9a-f]{40}|\.\/(\.github\/workflows\/\w+\.yml)?)$/)
    expect(text).toMatch(/^permissions:\n {2}contents: read$/m)
    expect(text).not.toMatch(/pull_request_target|secrets\./)
  })
})

describe('a release', () => {
  const workflow = (name: string) => read(`.github/workflows/${name}.yml`)
  const commands = (text: string) => [...text.matchAll(/run: (npm .+)$/gm)].map((match) => match[1] ?? '')
  const [, publish = ''] = workflow('release').split(/^ {2}publish:$/m)

  test('a release waits for an audit of the development packages, which are what is bundled', () => {
    expect(publish).toContain('needs: prove')
    expect(workflow('release')).toMatch(/^ {2}prove:\n {4}uses: \.\/\.github\/workflows\/ci\.yml$/m)
    const audits = commands(workflow('ci')).filter((command) => command.startsWith('npm audit'))
    expect(audits).toEqual(['npm audit --audit-level=low', 'npm audit signatures'])
  })

  test('a release runs no script of a package in the job that may publish', () => {
    expect(publish).toContain('id-token: write')
    expect(commands(publish)).toEqual([
      'npm ci --ignore-scripts',
      'npm run build',
      'npm publish --ignore-scripts --provenance --access public',
    ])
    expect(workflow('release').match(/id-token/g)).toHaveLength(1)
  })

  test.runIf(needs('posix'))(
    'a release stops unless the package names its repository, issue tracker and homepage',
    () => {
      const check = /run: (node -e .+)$/m.exec(publish)?.[1] ?? ''
      const directory = mkdtempSync(join(tmpdir(), 'mailclaim-release-'))
      const complete = { repository: 'r', bugs: 'b', homepage: 'h' }
      const status = (fields: object) => {
        writeFileSync(join(directory, 'package.json'), JSON.stringify(fields))
        return spawnSync('sh', ['-c', check], { cwd: directory }).status
      }
      expect(status(complete)).toBe(0)
      for (const field of Object.keys(complete)) expect(status({ ...complete, [field]: undefined })).toBe(1)
      rmSync(directory, { recursive: true })
    },
  )

  test('a release is built from packages whose checksums are in the lock file', () => {
    const { packages } = JSON.parse(read('package-lock.json')) as {
      packages: Record<
        string,
        { integrity?: string; dev?: true; optional?: true; os?: string[]; cpu?: string[] }
      >
    }
    // The formatter and the parser of the checks come as one package for each system.
    const without = Object.entries(packages).filter(
      ([path, { integrity }]) => path !== '' && integrity === undefined,
    )
    for (const [path, { dev, optional, os = [], cpu = [] }] of without) {
      expect({ path, dev, optional }).toEqual({ path, dev: true, optional: true })
      expect(path).toMatch(/^node_modules\/@(biomejs\/cli|oxc-parser\/binding)-/)
      const publisher = os.includes('linux') && cpu.includes('x64') && !path.endsWith('musl')
      expect(publisher, path).toBe(false)
    }
  })
})

describe('the threat model', () => {
  test('the threat model names tests that exist', () => {
    const named = [...read('docs/security.md').matchAll(/`(test\/[\w/.-]+)`/g)].map((match) => match[1] ?? '')
    expect(named.length).toBeGreaterThan(10)
    expect(named.filter((path) => !existsSync(new URL(path, root)))).toEqual([])
  })
})

describe('the floor plan in the documentation', () => {
  test('the floor plan lists every directory of the source', () => {
    const text = read('docs/architecture.md')
    const rooms = readdirSync(new URL('src/', root), { withFileTypes: true }).map((entry) =>
      entry.isDirectory() ? `${entry.name}/` : entry.name,
    )
    expect(rooms.filter((room) => !text.includes(`\`${room}\``))).toEqual([])
  })
})
