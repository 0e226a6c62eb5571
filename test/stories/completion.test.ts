import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { trySaveClaim } from '../../src/claims/ledger.ts'
import { createIo } from '../../src/terminal/io.ts'
import { createFakeContext, fakeSettings } from '../fake-context.ts'
import { needs } from '../requirements.ts'
import { run } from '../run.ts'
import { createWorld, install, type World } from './built-program.ts'
import { openTerminal } from './terminal.ts'

/** Creates a home directory with `mailclaim` in the PATH, two profiles, and one claim in the ledger. */
async function createHome(): Promise<World> {
  const world = createWorld()
  install(world)
  for (const profile of ['staging', 'default']) {
    const words = ['config', 'set', 'base-url', 'http://127.0.0.1:9', '--profile', profile]
    expect(await run(words, createFakeContext({ home: world.home }))).toBe(0)
  }
  const there = createFakeContext({ home: world.home })
  const settings = await fakeSettings(there, { baseUrl: 'http://127.0.0.1:9' })
  const claim = { object: 'domain_claim', name: 'mail.example', domain_id: 'd0', status: 'pending' }
  await trySaveClaim(claim, createIo(there, settings))
  return world
}

/** Opens a shell in a terminal. `tab` types a line, presses Tab, and waits until the screen matches. */
function openShell(command: string, world: World) {
  const terminal = openTerminal(world, command, { columns: 150 })
  return {
    ...terminal,
    async tab(line: string, expected: RegExp): Promise<string> {
      terminal.keys('C-u')
      terminal.type(line)
      await terminal.until(new RegExp(line.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').trimEnd()))
      terminal.keys('Tab')
      return terminal.until(expected)
    },
  }
}

async function exercise(shell: ReturnType<typeof openShell>): Promise<void> {
  await shell.tab('mailclaim conf', /\$ mailclaim config *$/m)
  await shell.tab('mailclaim config unset base', /\$ mailclaim config unset base-url *$/m)
  await shell.tab('mailclaim config list --form', /\$ mailclaim config list --format *$/m)
  await shell.tab('mailclaim config list --fields me', /\$ mailclaim config list --fields meaning *$/m)
  await shell.tab('mailclaim config list --profile sta', /\$ mailclaim config list --profile staging *$/m)
  await shell.tab('mailclaim claims get mai', /\$ mailclaim claims get mail\.example *$/m)
  await shell.tab('mailclaim config list --base-url http://127.0.0.1:9/ --js', /9\/ --json *$/m)
}

describe.runIf(needs('bash', 'tmux'))('bash', () => {
  test('bash completion offers commands, options, option values, profiles and domains', async () => {
    const world = await createHome()
    writeFileSync(join(world.home, 'rc'), `PS1='$ '\nsource <(mailclaim completion bash)\necho ready\n`)
    const shell = openShell(`bash --noprofile --rcfile '${join(world.home, 'rc')}' -i`, world)
    await shell.until(/ready/)
    await exercise(shell)
    shell.keys('C-u')
    await shell.tab('mailclaim config ', /\$ mailclaim config *$/m)
    shell.keys('Tab')
    await shell.until(/list +get +set +unset/)
  })

  test('the bash completion script, loaded twice under set -eu, completes "config s" to "set" without errors', async () => {
    const world = await createHome()
    const script = `set -eu; source <(mailclaim completion bash); source <(mailclaim completion bash)
      COMP_WORDS=(mailclaim config s); COMP_CWORD=2; _mailclaim; echo "\${COMPREPLY[@]}"`
    const { stdout, stderr } = spawnSync('bash', ['-c', script], { env: world.env, encoding: 'utf8' })
    expect({ stdout, stderr }).toEqual({ stdout: 'set\n', stderr: '' })
  })
})

describe.runIf(needs('zsh', 'tmux'))('zsh', () => {
  test.each([
    ['from a sourced script', 'autoload -Uz compinit && compinit -u -D\nsource <(mailclaim completion zsh)'],
    ['from a script sourced without compinit', 'source <(mailclaim completion zsh)'],
    [
      'from a script in a directory of fpath',
      'mkdir -p fn && mailclaim completion zsh > fn/_mailclaim && fpath=($PWD/fn $fpath)\nautoload -Uz compinit && compinit -u -D',
    ],
  ])('zsh completion %s offers commands, options, values, profiles and domains', async (_how, setUp) => {
    const world = await createHome()
    writeFileSync(join(world.home, '.zshrc'), `PS1='$ '\n${setUp}\necho ready\n`)
    const shell = openShell(`env ZDOTDIR='${world.home}' zsh -o no_global_rcs -i`, world)
    await shell.until(/ready/)
    await exercise(shell)
    await shell.tab('mailclaim config ', /list +-- list the settings/)
  })
})

describe.runIf(needs('fish'))('fish', () => {
  test('fish completion offers commands, profiles and domains', async () => {
    const world = await createHome()
    const ask = (line: string) => {
      const script = `mailclaim completion fish | source; complete -C '${line}'`
      const { stdout, stderr } = spawnSync('fish', ['--no-config', '-c', script], {
        env: world.env,
        cwd: world.home,
        encoding: 'utf8',
      })
      expect(stderr).toBe('')
      return stdout.trimEnd().split('\n')
    }
    expect(ask('mailclaim conf')).toEqual(['config\tprofile settings'])
    expect(ask('mailclaim config ').map((line) => line.split('\t')[0])).toEqual([
      'list',
      'get',
      'set',
      'unset',
    ])
    expect(ask('mailclaim config list --profile ')).toEqual([
      'default\thttp://127.0.0.1:9',
      'staging\thttp://127.0.0.1:9',
    ])
    expect(ask('mailclaim claims get ')).toEqual(['mail.example\tpending'])
  })
})
