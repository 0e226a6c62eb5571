// Records docs/tour.svg from real output: a sandbox, a terminal (tmux), the program, and the screen as it then is.
// Not part of the tests; run it by hand when what the program prints has changed: npm run picture
// With a directory (npm run picture -- DIRECTORY), the screens of other commands are recorded there, to be looked at.
import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const COLUMNS = 92
const ROWS = 60
const program = fileURLToPath(new URL('../bin/mailclaim.js', import.meta.url))
const target = fileURLToPath(new URL('../docs/tour.svg', import.meta.url))
const [directory] = process.argv.slice(2)
const home = mkdtempSync(join(tmpdir(), 'mailclaim-picture-'))
const environment = {
  PATH: `${home}:${process.env.PATH}`,
  HOME: home,
  LANG: 'C.UTF-8',
  TERM: 'xterm-256color',
  MAILCLAIM_STORE: 'file',
  PS1: '$ ',
}
writeFileSync(join(home, 'mailclaim'), `#!/bin/sh\nexec '${process.execPath}' '${program}' "$@"\n`, {
  mode: 0o755,
})

const tmux = (...words) =>
  execFileSync('tmux', ['-S', join(home, 'tmux'), '-f', '/dev/null', ...words], {
    encoding: 'utf8',
    env: environment,
  })
const screen = () => tmux('capture-pane', '-p', '-e', '-t', 'tour')

async function until(pattern) {
  for (let tries = 0; tries < 300; tries++) {
    if (pattern.test(screen())) return
    await sleep(100)
  }
  throw new Error(`${pattern} was not seen:\n${screen()}`)
}

const sandbox = spawn(
  process.execPath,
  [program, 'sandbox', '--json', '--auto-approve', '--exit-with-stdin'],
  {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: environment,
  },
)
try {
  const line = await new Promise((resolve) =>
    createInterface({ input: sandbox.stdout }).once('line', resolve),
  )
  const { base_url, client_id, dns } = JSON.parse(line)
  Object.assign(environment, {
    MAILCLAIM_BASE_URL: base_url,
    MAILCLAIM_CLIENT_ID: client_id,
    MAILCLAIM_RESOLVER: dns,
    MAILCLAIM_AUTHORITATIVE_PORT: dns.split(':').at(-1),
  })
  const login = spawn(process.execPath, [program, 'login', '--no-browser'], { env: environment })
  let output = ''
  let visited = false
  login.stderr.on('data', (text) => {
    output += text
    const url = /http\S+authorize\S+/.exec(output)?.[0]
    if (url === undefined || visited) return
    visited = true
    fetch(url)
  })
  await new Promise((resolve) => login.once('close', resolve))

  tmux(
    'new-session',
    '-d',
    '-s',
    'tour',
    '-x',
    String(COLUMNS),
    '-y',
    String(ROWS),
    'sh -c "PS1=\'$ \' exec dash -i"',
  )
  const publish = (body) =>
    fetch(`${base_url}/_sandbox/claims/example.com/publish`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  await until(/\$/)
  tmux('send-keys', '-t', 'tour', 'mailclaim claim example.com', 'Enter')
  await until(/isn't in DNS yet/)
  await publish({ mistake: 'quotes' })
  tmux('send-keys', '-t', 'tour', 'C-c')
  await sleep(1500)
  tmux('send-keys', '-t', 'tour', 'clear; mailclaim claims check example.com', 'Enter')
  await until(/\[quoted\][\s\S]*\$\s*$/)
  await publish({})
  tmux('send-keys', '-t', 'tour', 'mailclaim claim example.com', 'Enter')
  await until(/Next steps:[\s\S]*\$\s*$/)
  write(target, 'A terminal: claims check names quotation marks in the record, then the claim completes')

  if (directory !== undefined) {
    mkdirSync(directory, { recursive: true })
    const screens = {
      help: 'mailclaim',
      'help-of-a-command': 'mailclaim help claims check',
      status: 'mailclaim auth status',
      lists: 'mailclaim grants list; mailclaim imports list --limit 12; mailclaim claims list',
      doctor: 'mailclaim doctor',
      check: 'mailclaim claims check example.com',
      errors: 'mailclaim claims get nothing.example; mailclaim claim own.example --no-input; mailclaim clams',
    }
    for (const [name, line] of Object.entries(screens)) {
      tmux('send-keys', '-t', 'tour', `clear; ${line}; printf '[%s]' ${name}`, 'Enter')
      await until(new RegExp(`^\\[${name}\\]`, 'm'))
      write(join(directory, `${name}.svg`), line)
    }
    tmux('send-keys', '-t', 'tour', 'clear; mailclaim login --no-browser', 'Enter')
    await until(/Waiting for your approval/)
    await fetch(/http\S+authorize\S+/.exec(tmux('capture-pane', '-p', '-J', '-t', 'tour'))[0])
    await until(/Signed in[\s\S]*\$\s*$/)
    write(join(directory, 'login.svg'), 'mailclaim login')
  }
} finally {
  try {
    tmux('kill-server')
  } catch {}
  sandbox.stdin.end()
  await new Promise((resolve) => sandbox.once('close', resolve))
  rmSync(home, { recursive: true, force: true })
}

function write(file, label) {
  const text = screen().replace(/(\n\s*(\[[\w-]+\])?\$?\s*)+$/, '\n')
  writeFileSync(file, toSvg(text, label))
}

/** A screen with SGR sequences as an SVG that needs nothing but a monospaced font, for light and dark pages. */
function toSvg(text, label) {
  const NAMES = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white']
  const [width, height, pad] = [8.4, 19, 16]
  const escapeXml = (piece) =>
    piece.replace(
      /[&<>"]/g,
      (character) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[character],
    )
  const lines = text.replace(/\n$/, '').split('\n')
  let style = {}
  const rows = lines.map((row, at) => {
    let x = 0
    const spans = []
    for (const part of row.split(/(\u001b\[[\d;]*m)/)) {
      const codes = /^\u001b\[([\d;]*)m$/.exec(part)?.[1]
      if (codes === undefined) {
        if (part !== '') {
          const names = [style.color, style.bold && 'b', style.faint && 'f'].filter(Boolean).join(' ')
          if (part.trim() !== '') {
            spans.push(
              `<tspan x="${(pad + x * width).toFixed(1)}"${names && ` class="${names}"`}>${escapeXml(part)}</tspan>`,
            )
          }
          x += [...part].length
        }
        continue
      }
      for (const code of codes.split(';').map(Number)) {
        if (code === 0) style = {}
        else if (code === 1) style = { ...style, bold: true }
        else if (code === 2) style = { ...style, faint: true }
        else if (code === 22) style = { ...style, bold: false, faint: false }
        else if (code === 39) style = { ...style, color: undefined }
        else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97))
          style = { ...style, color: NAMES[code % 10] }
      }
    }
    return `<text y="${pad + (at + 1) * height - 5}" xml:space="preserve">${spans.join('')}</text>`
  })
  const size = [COLUMNS * width + 2 * pad, lines.length * height + 2 * pad].map(Math.ceil)
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size[0]} ${size[1]}" role="img" aria-label="${escapeXml(label)}">
<style>
:root{color-scheme:light dark;--paper:#f6f8fa;--edge:#d1d9e0;--ink:#1f2328;--faint:#59636e;--red:#c0362c;--green:#1a7f37;--yellow:#8a5d00;--blue:#0969da;--cyan:#0f6e84}
@media (prefers-color-scheme:dark){:root{--paper:#151b23;--edge:#3d444d;--ink:#d1d7e0;--faint:#9198a1;--red:#f47067;--green:#57ab5a;--yellow:#d4a72c;--blue:#539bf5;--cyan:#39c5cf}}
rect{fill:var(--paper);stroke:var(--edge)}
g{font:14px ui-monospace,'Cascadia Mono',Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:var(--ink)}
.b{font-weight:bold}.f{fill:var(--faint)}.red{fill:var(--red)}.green{fill:var(--green)}.yellow{fill:var(--yellow)}.blue{fill:var(--blue)}.cyan{fill:var(--cyan)}
</style>
<rect x=".5" y=".5" width="${size[0] - 1}" height="${size[1] - 1}" rx="10"/>
<g>
${rows.join('\n')}
</g>
</svg>
`
}
