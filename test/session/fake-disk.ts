import { CliError } from '../../src/errors.ts'
import type { Disk } from '../../src/storage/atomic-file.ts'

/** The process is dead: whatever it still does has no effect. */
export class Killed extends Error {}

/** What becomes of the step that a process is at: it dies before or after it, in the midst of it, or it fails. */
export type Fate = 'killed before' | 'killed after' | 'torn' | 'fails'

interface Inode {
  /** What readers see, and what a power loss leaves. */
  text: string
  durable: string | undefined
}

type Change =
  | readonly ['set' | 'delete', name: string, inode?: Inode]
  | readonly ['rename', string, string, Inode]

const failure = (code: string) => Object.assign(new Error(code), { code })

/**
 * A disk in memory with a volatile and a durable side: what wasn't flushed may or may not survive a power loss, in pieces, and so
 * may each change of a directory that wasn't flushed.
 */
export class FakeDisk {
  #names = new Map<string, Inode>()
  #durable = new Map<string, Inode>()
  #pending: Change[] = []
  readonly #held = new Map<Inode, number>()

  /** The disk as one process sees it. @param step called before each system call. */
  asSeenBy(process: number, step: (call: string) => Fate | undefined): Disk {
    const open = new Map<number, Inode>()
    let next = 3
    const opened = (inode: Inode) => {
      open.set(next, inode)
      return next++
    }
    const inodeOf = (fd: number) => {
      const inode = open.get(fd)
      if (inode === undefined) throw failure('EBADF')
      return inode
    }
    const perform = <T>(call: string, work: () => T, torn?: () => void): T => {
      const fate = step(call)
      if (fate === 'killed before') throw new Killed(call)
      if (fate === 'fails') throw failure('EIO')
      if (fate === 'torn') {
        torn?.()
        throw new Killed(call)
      }
      const result = work()
      if (fate === 'killed after') throw new Killed(call)
      return result
    }
    return {
      read: (path) => {
        try {
          return perform('read', () => this.#names.get(path)?.text)
        } catch (error) {
          if (error instanceof Killed) throw error
          throw new CliError('file_unusable', 'the disk reported an error')
        }
      },
      create: (path) =>
        perform(`create ${path}`, () => {
          if (this.#names.has(path)) throw failure('EEXIST')
          const inode: Inode = { text: '', durable: undefined }
          this.#change(['set', path, inode])
          return opened(inode)
        }),
      open: (path) => {
        const inode = this.#names.get(path)
        if (inode === undefined) throw failure('ENOENT')
        return opened(inode)
      },
      write: (fd, text) => {
        const inode = inodeOf(fd)
        const put = (part: string) => {
          inode.text = part + inode.text.slice(part.length)
        }
        perform(
          'write',
          () => put(text),
          () => put(text.slice(0, half(text))),
        )
      },
      sync: (fd) =>
        perform('sync', () => {
          const inode = inodeOf(fd)
          inode.durable = inode.text
        }),
      close: (fd) => {
        const inode = open.get(fd)
        open.delete(fd)
        if (inode !== undefined && this.#held.get(inode) === process) this.#held.delete(inode)
      },
      rename: (from, to) =>
        perform(`rename ${from}`, () => {
          const inode = this.#names.get(from)
          if (inode === undefined) throw failure('ENOENT')
          this.#change(['rename', from, to, inode])
        }),
      remove: (path) =>
        perform(`remove ${path}`, () => {
          if (!this.#names.has(path)) throw failure('ENOENT')
          this.#change(['delete', path])
        }),
      names: (directory) =>
        [...this.#names.keys()]
          .filter((path) => path.startsWith(`${directory}/`))
          .map((path) => path.slice(directory.length + 1)),
      syncDirectory: () =>
        perform('sync directory', () => {
          this.#durable = new Map(this.#names)
          this.#pending = []
        }),
      lock: async (path) => {
        let inode = this.#names.get(path)
        if (inode === undefined) {
          inode = { text: '', durable: '' }
          this.#names.set(path, inode)
        }
        if (this.#held.has(inode)) return undefined
        this.#held.set(inode, process)
        return opened(inode)
      },
    }
  }

  #change(change: Change): void {
    this.#pending.push(change)
    apply(this.#names, change)
  }

  /** Everything as it is; locks of a process that is dead are free. */
  release(process: number): void {
    for (const [inode, holder] of this.#held) if (holder === process) this.#held.delete(inode)
  }

  /** Whether the lock in this file is held. */
  isHeld(path: string): boolean {
    const inode = this.#names.get(path)
    return inode !== undefined && this.#held.has(inode)
  }

  /** Puts a file there, on the disk. */
  put(path: string, text: string): void {
    const inode = { text, durable: text }
    this.#names.set(path, inode)
    this.#durable.set(path, inode)
  }

  /** Deletes a file behind everybody's back. */
  delete(path: string): void {
    this.#names.delete(path)
    this.#durable.delete(path)
  }

  /** The same disk once more. */
  clone(): FakeDisk {
    const inodes = new Map<Inode, Inode>()
    const same = (inode: Inode): Inode => {
      const known = inodes.get(inode) ?? { ...inode }
      inodes.set(inode, known)
      return known
    }
    const names = (from: Map<string, Inode>) =>
      new Map([...from].map(([name, inode]) => [name, same(inode)] as const))
    const disk = new FakeDisk()
    disk.#names = names(this.#names)
    disk.#durable = names(this.#durable)
    disk.#pending = this.#pending.map(
      (change) => change.map((part) => (typeof part === 'object' ? same(part) : part)) as never,
    )
    return disk
  }

  /** Everything that matters to whoever comes next; equal for disks that can't be told apart. */
  get state(): unknown {
    const inodes: Inode[] = []
    const number = (inode: Inode) => {
      if (!inodes.includes(inode)) inodes.push(inode)
      return inodes.indexOf(inode)
    }
    const names = (from: Map<string, Inode>) =>
      [...from].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, inode]) => [name, number(inode)])
    const places = [
      names(this.#names),
      names(this.#durable),
      this.#pending.map((change) => change.map((part) => (typeof part === 'object' ? number(part) : part))),
    ]
    // Reserved space is blank; its length says whether all of it was written.
    const parts = (text: string) => [text.trimEnd(), text.length]
    return [places, inodes.map(({ text, durable }) => [parts(text), durable && parts(durable)])]
  }

  /** The text of every file. */
  get files(): ReadonlyMap<string, string> {
    return new Map([...this.#names].map(([path, { text }]) => [path, text]))
  }

  /** How many ways there are for a power loss to end. */
  get powerLosses(): number {
    return 2 ** Math.min(this.#pending.length, 5) * 3
  }

  /** @param which from 0: which of the unflushed changes survive, and whether unflushed texts are old, new or torn. */
  losePower(which: number): void {
    const texts = which % 3
    const kept = Math.floor(which / 3)
    const names = new Map(this.#durable)
    this.#pending.forEach((change, at) => {
      if ((kept >> at) & 1) apply(names, change)
    })
    for (const inode of new Set([...this.#names.values(), ...names.values()])) {
      const { text, durable } = inode
      if (durable === text || texts === 1) inode.durable = text
      else
        inode.text = inode.durable =
          // A torn write over flushed space keeps its length.
          texts === 0 ? (durable ?? '') : text.slice(0, half(text)) + (durable ?? '').slice(half(text))
    }
    this.#names = names
    this.#durable = new Map(names)
    this.#pending = []
    this.#held.clear()
  }
}

/** Where a torn write of a text stops; somewhere in it, even if it is blank. */
function half(text: string): number {
  return Math.ceil((text.trimEnd().length || text.length) / 2)
}

function apply(names: Map<string, Inode>, change: Change): void {
  const [kind, name, to, inode] = change as readonly [string, string, Inode | string | undefined, Inode?]
  if (kind === 'set') names.set(name, to as Inode)
  else names.delete(name)
  if (kind === 'rename') names.set(to as string, inode as Inode)
}
