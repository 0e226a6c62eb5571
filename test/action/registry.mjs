// Serves an npm registry on loopback that has only this package, packed, so that the action is tested as its users get it. Prints
// the registry's address, and runs until stdin ends.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const root = join(import.meta.dirname, '../..')
const directory = mkdtempSync(join(tmpdir(), 'mailclaim-registry-'))
// Skip the package's scripts: the program is built already. On Windows, npm is a batch file, which needs a shell.
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
