// Two steps of a release:
//
//   node scripts/release.mjs check TAG         reports everything that is missing for a release with this tag
//   node scripts/release.mjs assemble FROM TO  creates the directory TO with the files of the GitHub release, from the archives in the
//                                              directories of FROM, each with its SHA256SUMS; prints the release notes
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beginScript } from './begin.mjs'

const [step, ...words] = beginScript({ allowPositionals: true }).positionals
if (words.length !== { check: 1, assemble: 2 }[step])
  throw new Error('expected: check TAG, or assemble FROM TO')
const PLATFORMS = ['darwin-arm64', 'darwin-x64', 'linux-arm64', 'linux-x64', 'win32-x64']

const manifest = JSON.parse(readFileSync('package.json', 'utf8'))
const { name, version } = manifest
const [, date, notes] =
  new RegExp(`^## ${version.replaceAll('.', '\\.')} (.*)\n([^]*?)(?=^## |$(?![^]))`, 'm').exec(
    readFileSync('CHANGELOG.md', 'utf8'),
  ) ?? []

const sha256 = (file) => createHash('sha256').update(readFileSync(file)).digest('hex')

/** Returns the versions on npm; undefined if npm has no package of this name. */
function publishedVersions() {
  try {
    return [JSON.parse(execFileSync('npm', ['view', name, 'versions', '--json'], { stdio: 'pipe' }))].flat()
  } catch (error) {
    if (/\bE404\b/.test(error.stderr)) return undefined
    throw error
  }
}

/** Returns a sentence for each thing that is missing for a release with this tag. */
function complaints(tag) {
  const found = []
  if (tag !== `v${version}`) found.push(`the tag is ${tag}, and the version of package.json ${version}`)
  if (!/^- \d{4}-\d\d-\d\d$/.test(date)) found.push(`CHANGELOG.md has no line "## ${version} - DATE"`)
  // Messages about bugs name the address in `bugs`, and npm's provenance needs `repository`.
  for (const field of ['bugs', 'homepage']) if (!manifest[field]) found.push(`package.json has no "${field}"`)
  // npm accepts the repository as a URL, as an object, and in short forms such as github:OWNER/NAME.
  const repository = JSON.stringify(manifest.repository ?? '').match(/([\w.-]+\/[\w.-]+?)(\.git)?\/?"/)?.[1]
  const own = process.env.GITHUB_REPOSITORY ?? repository
  if (!repository) found.push('package.json has no "repository" of the form https://github.com/OWNER/NAME')
  else if (repository !== own) found.push(`"repository" of package.json isn't ${own}`)
  for (const file of ['install.sh', 'install.ps1', 'README.md']) {
    const text = readFileSync(file, 'utf8')
    if (text.includes('OWNER/') || !text.includes(`https://github.com/${own}/releases/latest/download`))
      found.push(`${file} isn't for that repository: replace OWNER/${name}`)
  }
  if (JSON.parse(readFileSync('package-lock.json', 'utf8')).version !== version)
    found.push('package-lock.json has another version: run npm install --package-lock-only')
  for (const said of new Set(
    readFileSync('docs/scripting.md', 'utf8').match(/[\w./-]+@v?\d+\.\d+\.\d+[\w.-]*/g),
  ))
    if (said !== `${name}@${version}` && said !== `${own}@v${version}`)
      found.push(`docs/scripting.md has ${said}, and not this release`)
  const published = publishedVersions()
  if (published === undefined) found.push(`npm has no package ${name}: a person publishes it once`)
  else if (published.includes(version)) found.push(`npm has ${name} ${version} already`)
  return found
}

function assemble(from, to) {
  mkdirSync(to)
  const files = ['install.sh', 'install.ps1']
  for (const file of files) copyFileSync(file, join(to, file))
  for (const directory of readdirSync(from))
    for (const line of readFileSync(join(from, directory, 'SHA256SUMS'), 'utf8')
      .trim()
      .split('\n')) {
      const [checksum, file] = line.split('  ')
      if (sha256(join(from, directory, file)) !== checksum) throw new Error(`${file} has another checksum`)
      copyFileSync(join(from, directory, file), join(to, file))
      files.push(file)
    }
  for (const platform of PLATFORMS)
    if (!files.some((file) => file.startsWith(`${name}-${version}-${platform}.`)))
      throw new Error(`no archive for ${platform}`)
  const sbom = `${name}-${version}.cdx.json`
  writeFileSync(
    join(to, sbom),
    execFileSync('npm', ['sbom', '--package-lock-only', '--sbom-format=cyclonedx']),
  )
  const lines = [...files, sbom].sort().map((file) => `${sha256(join(to, file))}  ${file}\n`)
  writeFileSync(join(to, 'SHA256SUMS'), lines.join(''))
}

if (step === 'assemble') {
  if (notes === undefined) throw new Error(`CHANGELOG.md has no section "## ${version}"`)
  assemble(...words)
  console.log(notes.trim())
} else {
  const found = complaints(...words)
  for (const complaint of found) console.error(complaint)
  if (found.length > 0) process.exitCode = 1
}
