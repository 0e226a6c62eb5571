import { describe, expect, test } from 'vitest'
import { checkProgram, runProgram } from '../../src/claims/run-program.ts'
import { needs } from '../requirements.ts'

async function run(script: string, onLine?: (line: string) => Promise<void>) {
  const lines: string[] = []
  const end = await runProgram(
    {
      command: ['sh', '-c', script],
      variables: { ADDED: 'yes' },
      timeoutMs: 20_000,
      onLine: onLine ?? (async (line) => void lines.push(line)),
    },
    { environment: { PATH: process.env['PATH'], OWN: 'kept' }, platform: process.platform },
  )
  return { end, lines }
}

describe.runIf(needs('posix'))('a program', () => {
  test('passes on its lines, the last one even without a line break', async () => {
    const { end, lines } = await run("printf 'one\\r\\n\\ntwo %s' $ADDED$OWN")
    expect(end).toEqual({ kind: 'exited', code: 0 })
    expect(lines).toEqual(['one', '', 'two yeskept'])
  })

  test('that prints without end in one line is passed on in pieces, whole characters each', async () => {
    const { lines } = await run("i=0; while [ $i -lt 3000 ]; do printf 'äöüß€'; i=$((i+1)); done")
    expect(lines.length).toBeGreaterThan(1)
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(8193)
    expect(lines.join('')).toBe('äöüß€'.repeat(3000))
  })

  test('that prints without end is listened to, but not copied without end', async () => {
    const { end, lines } = await run("head -c 9000000 /dev/zero | tr '\\0' 'x'; echo")
    expect(end).toEqual({ kind: 'exited', code: 0 })
    expect(lines.join('').length).toBeLessThan(5 * 1024 * 1024)
    expect(lines.at(-1)).toBe('… the rest of what it prints is left out')
  })

  test('has no input to wait for', async () => {
    expect((await run('cat; read x || echo none')).lines).toEqual(['none'])
  })

  test('that leaves another one in the background has ended', async () => {
    const began = performance.now()
    const { end, lines } = await run('sleep 15 & echo started')
    expect(end).toEqual({ kind: 'exited', code: 0 })
    expect(lines).toEqual(['started'])
    expect(performance.now() - began).toBeLessThan(10_000)
  })

  test('shares one listener for Ctrl-\\ with all others that run', async () => {
    const before = process.listenerCount('SIGQUIT')
    let most = 0
    const count = async () => {
      most = Math.max(most, process.listenerCount('SIGQUIT') - before)
    }
    await Promise.all(Array.from({ length: 16 }, () => run('echo started; sleep 0.2', count)))
    expect(most).toBe(1)
    expect(process.listenerCount('SIGQUIT')).toBe(before)
  })

  test('waits until its lines are taken', async () => {
    let open = 0
    let most = 0
    await run('for i in 1 2 3 4 5; do echo $i; done', async () => {
      most = Math.max(most, ++open)
      await new Promise((resolve) => setTimeout(resolve, 5))
      open--
    })
    expect(most).toBe(1)
  })

  test('is not started once the signal has aborted', async () => {
    const reason = new Error('over')
    const request = { command: ['true'] as [string], variables: {}, timeoutMs: 1000, onLine: async () => {} }
    const started = runProgram(
      { ...request, signal: AbortSignal.abort(reason) },
      { environment: {}, platform: process.platform },
    )
    await expect(started).rejects.toBe(reason)
  })
})

describe.runIf(needs('posix'))('a program that is only checked', () => {
  const check = async (file: string, path?: string, platform: NodeJS.Platform = 'linux') =>
    (await checkProgram(file, { environment: { PATH: path }, platform }))?.error.code

  test('is looked for in PATH, unless it has a slash', async () => {
    expect(await check('sh', '/nowhere:/bin')).toBeUndefined()
    expect(await check('/bin/sh', '/nowhere')).toBeUndefined()
    expect(await check('sh', '/nowhere')).toBe('ENOENT')
    expect(await check('./sh', '/bin')).toBe('ENOENT')
  })

  test('that is there but can not be run says so, unless another one can', async () => {
    expect(await check('passwd', '/nowhere:/etc')).toBe('EACCES')
    expect(await check('passwd', '/etc:/usr/bin')).toBeUndefined()
    expect(await check('/etc', '/bin')).toBe('EISDIR')
  })

  test('is left to the system where that has rules of its own', async () => {
    expect(await check('absent', 'C:\\bin', 'win32')).toBeUndefined()
    expect(await check('absent', undefined)).toBeUndefined()
  })
})
