import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { OutputClosedError, type PagerProcess } from '../context.ts'

/**
 * Starts a pager that reads from a pipe, and shares the terminal and the process group with this program, as in a shell's
 * pipeline: it gets Ctrl-C itself. `less` quits if everything fits the screen, keeps the colors, and leaves what it showed.
 *
 * @param environment of the pager; what it says of `LESS` and `LV` counts.
 * @throws NodeJS.ErrnoException if it can't be started
 */
export async function startPager(
  [file, ...args]: readonly [file: string, ...args: string[]],
  environment: Readonly<Record<string, string | undefined>>,
): Promise<PagerProcess> {
  const child = spawn(file, args, {
    env: { LESS: 'FRX', LV: '-c', ...environment },
    stdio: ['pipe', 'inherit', 'inherit'],
  })
  const ended = new Promise<number | undefined>((resolve) =>
    child.once('exit', (code) => resolve(code ?? undefined)),
  )
  const { stdin } = child
  // Whoever writes hears of it; Node would also throw it where nobody can catch it.
  stdin.on('error', () => {})
  if (child.pid === undefined) await once(child, 'spawn')
  return {
    ended,
    write: (text) =>
      new Promise((resolve, reject) => {
        const close = () => reject(new OutputClosedError('the pager was quit'))
        // A program that it started may hold the pipe open without reading.
        void ended.then(close)
        stdin.write(text, (error) => (error ? close() : resolve()))
      }),
    end: () => void stdin.end(),
    kill: () => void child.kill('SIGTERM'),
  }
}
