// Each floor imports only from floors below it (or from its own room), and never in a circle.
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseSync } from 'oxc-parser'

/** From the top floor down. Parts on one line may import from each other, without circles. */
const FLOORS = [
  ['main.ts', 'signals.ts', 'streams.ts'],
  ['cli.ts', 'cli'],
  ['commands'],
  ['claims', 'imports', 'doctor', 'oauth', 'session', 'dns'],
  ['service'],
  ['credentials'],
  ['terminal'],
  ['settings'],
  ['storage'],
  ['context.ts', 'errors.ts', 'shell-quote.ts', 'turns.ts', 'undici.d.ts'],
]
/** Inside dns/, from the top down; what lies beside the directories uses all of them. */
const DNS_DIRECTORIES = ['dns/html-report', 'dns/diagnosis', 'dns/observation', 'dns/resolution', 'dns/wire']
/** Beside the floors: takes at most types from service/, and only the sandbox command starts it. */
const SANDBOX = 'sandbox'

const src = fileURLToPath(new URL('../src', import.meta.url))
const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
const room = (file) => file.split('/')[0]
const floor = (file) => FLOORS.findIndex((rooms) => rooms.includes(room(file)))
const dnsFloor = (file) => DNS_DIRECTORIES.findIndex((directory) => file.startsWith(`${directory}/`))
const complaints = []
const graph = new Map()

for (const file of files) {
  const { module } = parseSync(file, readFileSync(join(src, file), 'utf8'))
  const imports = [
    ...module.staticImports.map((found) => ({
      from: found.moduleRequest.value,
      typeOnly: found.entries.length > 0 && found.entries.every((entry) => entry.isType),
    })),
    ...module.staticExports.flatMap((found) =>
      found.entries
        .filter((entry) => entry.moduleRequest)
        .map((entry) => ({ from: entry.moduleRequest.value, typeOnly: entry.isType })),
    ),
    ...module.dynamicImports.map((found) => ({
      from: readFileSync(join(src, file), 'utf8')
        .slice(found.moduleRequest.start, found.moduleRequest.end)
        .replace(/^['"`]|['"`]$/g, ''),
      typeOnly: false,
    })),
  ].filter((found) => found.from.startsWith('.'))

  for (const { from, typeOnly } of imports) {
    const target = relative(src, join(src, dirname(file), from))
    if (target.startsWith('..')) continue
    graph.set(file, [...(graph.get(file) ?? []), target])
    if (room(file) === SANDBOX) {
      const ownOrType = room(target) === SANDBOX || (typeOnly && room(target) === 'service')
      if (!ownOrType)
        complaints.push(`${file} takes ${target}: the sandbox takes at most types from service/`)
    } else if (room(target) === SANDBOX) {
      if (file !== 'commands/sandbox.ts')
        complaints.push(`${file} takes ${target}: only the sandbox command may`)
    } else if (floor(file) < 0 || floor(target) < 0) {
      complaints.push(`${floor(file) < 0 ? file : target} is on no floor of scripts/check-floors.mjs`)
    } else if (floor(target) < floor(file) || (room(target) === 'dns' && dnsFloor(target) < dnsFloor(file))) {
      complaints.push(`${file} takes ${target}, which is a floor above it`)
    }
  }
}

const done = new Set()
function visit(file, path) {
  if (path.includes(file)) {
    complaints.push(`a circle: ${[...path.slice(path.indexOf(file)), file].join(' → ')}`)
    return
  }
  if (done.has(file)) return
  for (const next of graph.get(file) ?? []) visit(next, [...path, file])
  done.add(file)
}
for (const file of files) visit(file, [])

for (const complaint of new Set(complaints)) console.error(complaint)
if (complaints.length > 0) process.exitCode = 1
else console.log(`${files.length} files on ${FLOORS.length} floors, no upward import, no circle`)
