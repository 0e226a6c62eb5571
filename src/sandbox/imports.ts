import { mix, seededId, seededIndex } from './fixtures.ts'
import type { Sequence } from './paging.ts'
import { validationError } from './problems.ts'
import { timestamp } from './virtual-clock.ts'

/** A contact import (interface, section 2.4). */
interface ContactImport {
  readonly object: 'contact_import'
  readonly id: string
  readonly status: ImportStatus
  readonly created_at: string
  readonly completed_at: string | null
  readonly counts: {
    readonly total: number
    readonly created: number
    readonly updated: number
    readonly skipped: number
    readonly failed: number
  }
}

const STATUSES = ['queued', 'in_progress', 'completed', 'failed'] as const
type ImportStatus = (typeof STATUSES)[number]

/** The newest imports are under way when the sandbox starts and move with its clock; times in seconds from then. */
interface Running {
  readonly starts: number
  readonly lasts: number
  /** The progress, from 0 to 1, at which it fails, if it does. */
  readonly failsAt?: number
}
const RUNNING: readonly Running[] = [
  { starts: 10, lasts: 60 },
  { starts: 0, lasts: 30 },
  { starts: 0, lasts: 20, failsAt: 0.6 },
  { starts: 0, lasts: 600 },
  { starts: 3_600, lasts: 600 },
  { starts: 86_400, lasts: 600 },
]

const KIND = 11
const SECONDS_BETWEEN = 97

export interface Imports {
  /** All imports, or those of one status. @throws Problem 422 for a status that does not exist. */
  list(status: string | undefined): Sequence<ContactImport>
  get(id: string): ContactImport | undefined
  readonly length: number
}

export function createImports(length: number, startedAt: number, now: () => number): Imports {
  function progressOf(index: number): { status: ImportStatus; share: number; endedAt: number | null } {
    const running = RUNNING[index]
    if (running === undefined) {
      const failed = mix(index, 3) % 10 === 0
      const endedAt = createdAt(index) + 20_000 + (mix(index, 4) % 60_000)
      return { status: failed ? 'failed' : 'completed', share: failed ? 0.4 : 1, endedAt }
    }
    const begins = startedAt + running.starts * 1000
    const share = (now() - begins) / (running.lasts * 1000)
    const end = running.failsAt ?? 1
    if (share < 0) return { status: 'queued', share: 0, endedAt: null }
    if (share < end) return { status: 'in_progress', share, endedAt: null }
    const endedAt = begins + running.lasts * end * 1000
    return { status: running.failsAt === undefined ? 'completed' : 'failed', share: end, endedAt }
  }

  function createdAt(index: number): number {
    return startedAt - index * SECONDS_BETWEEN * 1000 - (mix(index, 2) % 60_000)
  }

  function at(index: number): ContactImport {
    const { status, share, endedAt } = progressOf(index)
    const total = 200 + (mix(index, 5) % 20_000)
    const done = Math.floor(total * share)
    const updated = Math.floor((done * (mix(index, 6) % 30)) / 100)
    const skipped = Math.floor((done * (mix(index, 7) % 5)) / 100)
    const failed = Math.floor((done * (mix(index, 8) % 3)) / 100)
    return {
      object: 'contact_import',
      id: seededId(KIND, index),
      status,
      created_at: timestamp(createdAt(index)),
      completed_at: endedAt === null ? null : timestamp(endedAt),
      counts: { total, created: done - updated - skipped - failed, updated, skipped, failed },
    }
  }

  function positionOf(id: string): number {
    const index = seededIndex(KIND, id)
    return index < length ? index : -1
  }

  return {
    length,
    list(status) {
      if (status === undefined) return { length, at, positionOf }
      if (!STATUSES.some((known) => known === status)) {
        throw validationError(`The \`status\` parameter must be one of ${STATUSES.join(', ')}.`)
      }
      // Only these can be queued or in progress: no need to search 100,000 finished ones.
      const last = status === 'queued' || status === 'in_progress' ? Math.min(length, RUNNING.length) : length
      const seek = (position: number, step: 1 | -1): number => {
        let candidate = step === -1 ? Math.min(position, last - 1) : position
        while (candidate >= 0 && candidate < last) {
          if (progressOf(candidate).status === status) return candidate
          candidate += step
        }
        return -1
      }
      return { length, at, positionOf, seek }
    },
    get(id) {
      const index = positionOf(id)
      return index < 0 ? undefined : at(index)
    },
  }
}
