import type { CommandDefinition } from './definition.ts'

/** A command by its word: what it does in one line, and where it is. Its code is loaded only when it is typed. */
export interface CommandLeaf {
  readonly says: string
  load(): Promise<CommandDefinition>
}

export interface CommandGroup {
  readonly says: string
  readonly commands: Readonly<Record<string, CommandLeaf>>
}

export type CommandTree = Readonly<Record<string, CommandLeaf | CommandGroup>>

const leaf = (says: string, load: () => Promise<{ command: CommandDefinition<never> }>): CommandLeaf => ({
  says,
  load: async () => (await load()).command as unknown as CommandDefinition,
})

/** Every command of the program, in the order in which help shows them. */
export const tree: CommandTree = {
  login: leaf('sign in with the browser', () => import('./login.ts')),
  logout: leaf('forget the session of the profile', () => import('./logout.ts')),
  auth: {
    says: 'the session: its state, its token, profiles',
    commands: {
      status: leaf('who is signed in, until when, where the secret lives', () => import('./auth/status.ts')),
      token: leaf('print a valid access token', () => import('./auth/token.ts')),
      refresh: leaf('renew the session now', () => import('./auth/refresh.ts')),
      list: leaf('the profiles', () => import('./auth/list.ts')),
      switch: leaf('use another profile from now on', () => import('./auth/switch.ts')),
    },
  },
  grants: {
    says: 'OAuth grants of the team',
    commands: {
      list: leaf('list the grants, revoked ones included', () => import('./grants/list.ts')),
    },
  },
  imports: {
    says: 'contact imports',
    commands: {
      list: leaf('list the contact imports', () => import('./imports/list.ts')),
      get: leaf('show one contact import', () => import('./imports/get.ts')),
      watch: leaf('follow a contact import to its end', () => import('./imports/watch.ts')),
    },
  },
  claims: {
    says: 'domain claims, step by step',
    commands: {
      create: leaf('start a claim and print its TXT record', () => import('./claims/create.ts')),
      list: leaf('list the claims known on this machine', () => import('./claims/list.ts')),
      get: leaf('show the latest claim of a domain', () => import('./claims/get.ts')),
      record: leaf('print the TXT record to add', () => import('./claims/record.ts')),
      check: leaf('find out what DNS says, and what is wrong', () => import('./claims/check.ts')),
      verify: leaf('ask the service to verify', () => import('./claims/verify.ts')),
      watch: leaf('follow a claim to its end', () => import('./claims/watch.ts')),
    },
  },
  claim: leaf('claim a domain: the whole road in one command', () => import('./claim.ts')),
  sandbox: leaf('a local service to try things out on', () => import('./sandbox.ts')),
  doctor: leaf('check the set-up, with a remedy for each problem', () => import('./doctor.ts')),
  config: {
    says: 'settings of a profile',
    commands: {
      list: leaf('list the settings', () => import('./config/list.ts')),
      get: leaf('print one setting', () => import('./config/get.ts')),
      set: leaf('change a setting', () => import('./config/set.ts')),
      unset: leaf('remove a setting', () => import('./config/unset.ts')),
      path: leaf('print where the settings are kept', () => import('./config/path.ts')),
    },
  },
  completion: leaf('print the completion script of a shell', () => import('./completion.ts')),
}
