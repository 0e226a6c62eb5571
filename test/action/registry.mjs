// A registry on loopback that has the packed package and nothing else, so that the action can be tried as its users get it. Prints its
// address, and runs until its stdin ends.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const root = join(import.meta.dirname, '../..')
const directory = mkdtempSync(join(tmpdir(), 'mailclaim-registry-'))
// Without scripts: it has been built. npm is a batch file on Windows.
const pack = ['pack', '--json', '--ignore-scripts', '--pack-destination', directory]
const options = { cwd: root, encoding: 'utf8', shell: process.platform === 'win32' }
const [{ filename, integrity }] = Object.values(JSON.parse(execFileSync('npm', pack, options)))
const tarball = readFileSync(join(directory, filename))
rmSync(directory, { recursive: true })

const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const { name, version } = manifest
const server = createServer(({ url, headers }, response) => {
  if (url === `/${filename}`) return response.end(tarball)
  if (url !== `/${name}`) return response.writeHead(404).end('{}')
  const dist = { tarball: `http://${headers.host}/${filename}`, integrity }
  const versions = { [version]: { ...manifest, dist } }
  response.end(JSON.stringify({ name, 'dist-tags': { latest: version }, versions }))
})
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}/`))
process.stdin.resume().on('end', () => process.exit())
