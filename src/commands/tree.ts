import type { CommandDefinition, CommandLeaf, CommandTree } from './definition.ts'

const leaf = (
  summary: string,
  load: () => Promise<{ command: CommandDefinition }>,
  heading?: string,
): CommandLeaf => ({ summary, heading, load: async () => (await load()).command })

const SIGN_IN = 'Sign in'
const TEAM = 'View'
const CLAIM = 'Claim'
const TRY = 'Try'
const SETUP = 'Set up'

/** All commands, in the order of `mailclaim --help`. */
export const commandTree: CommandTree = {
  login: leaf('sign in with the browser', () => import('./login.ts'), SIGN_IN),
  logout: leaf('forget the session of the profile', () => import('./logout.ts'), SIGN_IN),
  auth: {
    summary: 'the session: its state, its token, profiles',
    heading: SIGN_IN,
    commands: {
      status: leaf(
        'show who is signed in, until when, and where the secret is',
        () => import('./auth/status.ts'),
      ),
      token: leaf('print a valid access token', () => import('./auth/token.ts')),
      refresh: leaf('renew the session now', () => import('./auth/refresh.ts')),
      list: leaf('list the profiles', () => import('./auth/list.ts')),
      switch: leaf('use another profile from now on', () => import('./auth/switch.ts')),
    },
  },
  grants: {
    summary: 'OAuth grants of the team',
    heading: TEAM,
    commands: {
      list: leaf('list the grants, revoked ones included', () => import('./grants/list.ts')),
    },
  },
  imports: {
    summary: 'contact imports',
    heading: TEAM,
    commands: {
      list: leaf('list the contact imports', () => import('./imports/list.ts')),
      get: leaf('show one contact import', () => import('./imports/get.ts')),
      watch: leaf('follow a contact import until it ends', () => import('./imports/watch.ts')),
    },
  },
  claims: {
    summary: 'domain claims, step by step',
    heading: CLAIM,
    commands: {
      create: leaf('start a claim and print its TXT record', () => import('./claims/create.ts')),
      list: leaf('list the claims known on this machine', () => import('./claims/list.ts')),
      get: leaf('show the latest claim of a domain', () => import('./claims/get.ts')),
      forget: leaf('remove a claim from the list of this machine', () => import('./claims/forget.ts')),
      record: leaf('print the TXT record to add', () => import('./claims/record.ts')),
      check: leaf(
        'check DNS for the TXT record, and explain what is wrong',
        () => import('./claims/check.ts'),
      ),
      verify: leaf('ask the service to verify', () => import('./claims/verify.ts')),
      watch: leaf('follow a claim until it ends', () => import('./claims/watch.ts')),
    },
  },
  claim: leaf('claim a domain: the whole flow in one command', () => import('./claim.ts'), CLAIM),
  sandbox: leaf('run a local service to try things out', () => import('./sandbox.ts'), TRY),
  doctor: leaf('check the setup, with a remedy for each problem', () => import('./doctor.ts'), SETUP),
  config: {
    summary: 'profile settings',
    heading: SETUP,
    commands: {
      list: leaf('list the settings, and where the files are', async () => ({
        command: (await import('./config.ts')).configList,
      })),
      get: leaf('print one setting', async () => ({ command: (await import('./config.ts')).configGet })),
      set: leaf('change a setting', async () => ({ command: (await import('./config.ts')).configSet })),
      unset: leaf('remove a setting', async () => ({ command: (await import('./config.ts')).configUnset })),
    },
  },
  completion: leaf('print the completion script of a shell', () => import('./completion.ts'), SETUP),
  commands: leaf(
    'describe every command, for programs',
    async () => ({ command: (await import('./commands.ts')).createCommandsCommand(commandTree) }),
    SETUP,
  ),
}
