import { CliError } from '../../src/errors.ts'
import type { Disk } from '../../src/storage/atomic-file.ts'

/** Thrown from a system call of a killed process, whose further calls have no effect. */
export class Killed extends Error {}

/** Fate of one step of a process: killed before or after the step, killed in the middle of a write (`torn`), or an error. */
export type Fate = 'killed before' | 'killed after' | 'torn' | 'fails'

interface Inode {
  /** Text of a file: `text` as readers see it, `durable` as it is after a power loss. */
  text: string
  durable: string | undefined
}

type Change =
  | readonly ['set' | 'delete', name: string, inode?: Inode]
  | readonly ['rename', string, string, Inode]

const failure = (code: string) => Object.assign(new Error(code), { code })

/**
 * A disk in memory with a volatile and a durable side: a power loss may keep or lose, also in pieces, each write and each change of
 * a directory that wasn't flushed.
 */
export class FakeDisk {
  #names = new Map<string, Inode>()
  #durable = new Map<string, Inode>()
  #pending: Change[] = []
  readonly #held = new Map<Inode, number>()

  /** Returns the disk as one process sees it. @param step called before each system call; returns the fate of the call */
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

  /** Releases the locks of a process that has ended; the lock files stay. */
  release(process: number): void {
    for (const [inode, holder] of this.#held) if (holder === process) this.#held.delete(inode)
  }

  /** Whether a process holds the lock of this file. */
  isHeld(path: string): boolean {
    const inode = this.#names.get(path)
    return inode !== undefined && this.#held.has(inode)
  }

  /** Creates a file whose text survives a power loss. */
  put(path: string, text: string): void {
    const inode = { text, durable: text }
    this.#names.set(path, inode)
    this.#durable.set(path, inode)
  }

  /** Deletes a file, as if by hand. */
  delete(path: string): void {
    this.#names.delete(path)
    this.#durable.delete(path)
  }

  /** Returns an independent copy of the disk. */
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

  /** Returns the state that later processes can observe; equal for disks that can't be told apart. */
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
    // Reserved space is blank, so its length is compared too: it shows whether all of it was written.
    const parts = (text: string) => [text.trimEnd(), text.length]
    return [places, inodes.map(({ text, durable }) => [parts(text), durable && parts(durable)])]
  }

  /** Returns the visible text of every file. */
  get files(): ReadonlyMap<string, string> {
    return new Map([...this.#names].map(([path, { text }]) => [path, text]))
  }

  /** Number of possible results of a power loss. */
  get powerLosses(): number {
    return 2 ** Math.min(this.#pending.length, 5) * 3
  }

  /**
   * Loses power.
   *
   * @param which number of the result, from 0: selects the unflushed changes that survive, and whether unflushed texts are old, new
   *   or torn
   */
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
          // A torn write over flushed space keeps the length of the file.
          texts === 0 ? (durable ?? '') : text.slice(0, half(text)) + (durable ?? '').slice(half(text))
    }
    this.#names = names
    this.#durable = new Map(names)
    this.#pending = []
    this.#held.clear()
  }
}

/** Returns the position at which a torn write stops: within the text, even if the text is blank. */
function half(text: string): number {
  return Math.ceil((text.trimEnd().length || text.length) / 2)
}

function apply(names: Map<string, Inode>, change: Change): void {
  const [kind, name, to, inode] = change as readonly [string, string, Inode | string | undefined, Inode?]
  if (kind === 'set') names.set(name, to as Inode)
  else names.delete(name)
  if (kind === 'rename') names.set(to as string, inode as Inode)
}
