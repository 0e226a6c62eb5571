// Checks the layout of the project. Each floor of src/, in the order of the table in docs/architecture.md, imports from itself and
// from floors below it (biome forbids import cycles). The project's root has only the entries of ROOT. The tests that CONTRIBUTING.md
// names exist. Each package in the lock file has a checksum, and no other source than the registry.
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { beginScript } from './begin.mjs'

/** A room beside the floors: it imports at most types from service/, and only its command imports it. */
const SANDBOX = 'sandbox'

/** The entries of the project's root. */
const ROOT = `
  .ci .github .gitignore action action.yml bench bin docs install.ps1 install.sh scripts src test
  AGENTS.md CHANGELOG.md CONTRIBUTING.md LICENSE README.md SECURITY.md
  biome.json knip.json package.json package-lock.json tsconfig.json vitest.config.ts`
  .trim()
  .split(/\s+/)

beginScript()
const root = join(import.meta.dirname, '..')
/** Floors from the top down: the rooms in the first cell of each row. Rooms of one row may import from each other. */
const floors = readFileSync(join(root, 'docs', 'architecture.md'), 'utf8')
  .split(/^## /m)
  .find((section) => section.startsWith('The floors'))
  ?.match(/^\| `[^|]+/gm)
  ?.map((cell) => [...cell.matchAll(/`([^`/]+)\/?`/g)].map(([, name]) => name))
const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  .map((file) => file.replaceAll('\\', '/'))
  .filter((file) => file.endsWith('.ts'))
const room = (file) => file.split('/')[0]
const floor = (file) => floors.findIndex((rooms) => rooms.includes(room(file)))
const IMPORT = /^(import|export)( type)?\b[^'"]*?\bfrom '(\.[^']+)'|\bimport\('(\.[^']+)'\)/gm

function complaint(file, target, typeOnly) {
  if (room(file) === SANDBOX) {
    const ownOrType = room(target) === SANDBOX || (typeOnly && room(target) === 'service')
    return ownOrType ? undefined : 'the sandbox takes at most types from service/'
  }
  if (room(target) === SANDBOX)
    return file === 'commands/sandbox.ts' ? undefined : 'only the sandbox command may'
  if (floor(file) < 0) return `${room(file)} is on no floor of docs/architecture.md`
  return floor(target) < floor(file) ? 'which is on a floor above it, or on none' : undefined
}

const complaints = files.flatMap((file) =>
  [...readFileSync(join(root, 'src', file), 'utf8').matchAll(IMPORT)].flatMap(([, , type, from, late]) => {
    const target = posix.join(dirname(file), from ?? late)
    const wrong = complaint(file, target, type !== undefined)
    return wrong === undefined ? [] : [`src/${file} takes ${target}: ${wrong}`]
  }),
)
const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  cwd: root,
  encoding: 'utf8',
  stdio: 'pipe',
})
for (const entry of new Set(listed.trim().split('\n').map(room)))
  if (!ROOT.includes(entry)) complaints.push(`${entry} doesn't belong in the root`)

for (const [, test] of readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8').matchAll(
  /`(?:test\/)?([\w/-]+\.test\.ts)`/g,
))
  if (!existsSync(join(root, 'test', test)))
    complaints.push(`test/${test}, which CONTRIBUTING.md names, isn't there`)

const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
// A package without a `resolved` address comes from the registry that the user has configured; its checksum makes sure of its content.
for (const [path, { integrity, resolved }] of Object.entries(packages))
  if (path !== '' && (!integrity || resolved !== undefined))
    complaints.push(
      `package-lock.json has ${path} without a checksum, or with an address: npm install --omit-lockfile-registry-resolved`,
    )

for (const line of complaints) console.error(line)
if (complaints.length > 0) process.exitCode = 1
