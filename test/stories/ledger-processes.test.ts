import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { expect, it, onTestFinished } from 'vitest'
import { readLedger } from '../../src/claims/ledger.ts'
import { createFakeContext, fakeSettings } from '../fake-context.ts'
import { needs } from '../requirements.ts'
import { createServedWorld, PROGRAM } from './built-program.ts'

const BASE = 'http://127.0.0.1:1'

/** Saves claims and forgets every fourth, until it is killed; prints what it has done. */
const WRITER = `
  import { forgetClaims, readLedger, recordClaim } from './ledger.mjs'
  const [state, own] = process.argv.slice(2)
  const clock = { now: () => Date.now() }
  const context = { clock, directories: { state }, environment: {}, stderr: { write: async (text) => { throw new Error(text) } } }
  const settings = { baseUrl: { value: '${BASE}' }, profile: { value: 'default' } }
  const done = (text) => process.stdout.write(text + '\\n')
  for (let at = 0; ; at++) {
    const name = at % 2 === 0 ? 'shared.example' : \`\${own}-\${at}.example\`
    const domain_id = \`\${own}-\${at}\`
    done(\`begin \${domain_id} \${name}\`)
    await recordClaim({ name, domain_id, status: 'pending' }, context, settings)
    done(\`saved \${domain_id} \${name}\`)
    if (at % 4 !== 3) continue
    done(\`forgetting \${domain_id} \${name}\`)
    forgetClaims([{ issuer: '${BASE}', domainId: domain_id }], context, settings)
    if (at % 16 === 3) for await (const _ of await readLedger(context, settings, async () => {})) {}
  }
`

it('processes that write at once and are killed lose no claim that they had saved', {
  timeout: 60_000,
}, async () => {
  const context = createFakeContext()
  const settings = await fakeSettings(context, { baseUrl: BASE })
  const { state } = context.directories
  const code = join(state, 'code')
  mkdirSync(code, { recursive: true })
  const entry = fileURLToPath(new URL('../../src/claims/ledger.ts', import.meta.url))
  await build({
    entryPoints: [entry],
    bundle: true,
    platform: 'node',
    format: 'esm',
    outfile: join(code, 'ledger.mjs'),
  })
  writeFileSync(join(code, 'writer.mjs'), WRITER)
  const running = new Set<ChildProcess>()
  onTestFinished(() => {
    for (const child of running) child.kill('SIGKILL')
  })

  const outputs = await Promise.all(
    Array.from({ length: 12 }, async (_, at) => {
      const child = spawn(process.execPath, [join(code, 'writer.mjs'), state, `p${at}`], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      running.add(child)
      let text = ''
      child.stdout.setEncoding('utf8').on('data', (piece: string) => {
        // Killed in the middle of whatever it does, each at another moment.
        if (text === '') setTimeout(() => child.kill('SIGKILL'), 150 + at * 53)
        text += piece
      })
      await new Promise((resolve) => child.once('close', resolve))
      running.delete(child)
      return text
    }),
  )

  const steps = outputs.flatMap((text) =>
    text
      .trim()
      .split('\n')
      .map((line) => line.split(' ')),
  )
  const having = (step: string) =>
    new Map(steps.filter(([one]) => one === step).map(([, id, name]) => [id, name]))
  const forgotten = having('forgetting')
  const saved = [...having('saved')].filter(([id]) => !forgotten.has(id))
  expect(saved.length).toBeGreaterThan(50)
  const damaged: string[] = []
  const idsOf = async (about?: string) =>
    (await readLedger(context, settings, async (error) => void damaged.push(error.message), about)).map(
      ({ claim }) => claim.domain_id,
    )
  for (const [id, name] of saved) {
    expect(await idsOf(id)).toEqual([id])
    expect(await idsOf(name)).toContain(id)
  }
  // Whatever has a file, also that of a process which was killed before it could say so, is found by its name.
  const begun = having('begin')
  const byName = new Map<string | undefined, string[]>()
  for (const id of await idsOf()) {
    const name = begun.get(id ?? '')
    if (!byName.has(name)) byName.set(name, (await idsOf(name)) as string[])
    expect(byName.get(name)).toContain(id)
  }
  expect(damaged).toEqual([])
})

it.runIf(needs('strace'))(
  'starting a claim and finding one by name list no directory of claims',
  async () => {
    const world = await createServedWorld()
    const env = { MAILCLAIM_API_KEY: world.service.api_key }
    const ledger = join(world.home, 'state', 'claims', 'default')
    const run = async (...words: string[]) => {
      const trace = join(world.home, 'trace')
      rmSync(trace, { force: true })
      const quoted = [
        'strace',
        '-f',
        '-qq',
        '-e',
        'trace=open,openat',
        '-o',
        trace,
        process.execPath,
        PROGRAM,
        ...words,
      ]
      const ended = await world.script(quoted.map((word) => `'${word}'`).join(' '), { env })
      expect(ended.code, ended.stderr).toBe(0)
      return readFileSync(trace, 'utf8')
        .split('\n')
        .filter((line) => line.includes(`"${ledger}"`) && line.includes('O_DIRECTORY'))
    }
    // The first command for a domain compares the index with the ledger.
    await run('claims', 'create', 'one.example')
    expect(await run('claims', 'get', 'one.example')).toHaveLength(1)
    expect(await run('claims', 'create', 'two.example')).toEqual([])
    expect(await run('claims', 'get', 'two.example')).toEqual([])
    expect(await run('__complete', '--', 'claims', 'get', 't')).toEqual([])
    expect(readdirSync(ledger).filter((name) => name.endsWith('.json'))).toHaveLength(2)
  },
)
