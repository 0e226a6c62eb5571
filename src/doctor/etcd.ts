import { otherCluster, outOfSpace } from '../credentials/etcd/client.ts'
import { keyName } from '../credentials/etcd/sealed.ts'
import { CliError, Exit } from '../errors.ts'
import { isValue, type SharedContext, type SharedSettings, SharedVault } from '../session/shared/vault.ts'
import { formatTime } from '../terminal/relative-time.ts'
import { type Diagnosis, ok, problem, warning } from './report.ts'

const READ_MS = 7000
/** How long before a client certificate expires to warn. */
const EXPIRY_NOTICE_MS = 14 * 86_400_000

function noMajority(): never {
  throw new CliError(
    'store_unavailable',
    Exit.unavailable,
    `etcd didn't answer within ${READ_MS / 1000} seconds: is a majority of its members running, and connected?`,
    { hint: 'start the members that do not answer, and look at their logs' },
  )
}

/** Runs work within the time of a check: without a majority, the answer takes longer. */
async function inTime<T>(work: Promise<T>, { clock }: SharedContext): Promise<T> {
  const over = new AbortController()
  try {
    return await Promise.race([work, clock.sleep(READ_MS, over.signal).then(noMajority)])
  } finally {
    over.abort()
  }
}

async function readAndProve(vault: SharedVault) {
  const found = await vault.read()
  await vault.client.proveWritable(vault.access.key)
  return found
}

/** The client id of the session in etcd; undefined if there is none that can be read, which another check reports. */
export async function clientIdOfSession(
  context: SharedContext,
  settings: SharedSettings,
): Promise<string | undefined> {
  try {
    const found = await inTime(new SharedVault(context, settings).read(), context)
    return isValue(found) ? found.contents.record.clientId : undefined
  } catch (error) {
    if (error instanceof CliError) return undefined
    throw error
  }
}

/** Which members of etcd answer, and whether the session can be read and replaced: majority, TLS, user, permissions, room, and key. */
export async function examineShared(
  check: string,
  context: SharedContext,
  settings: SharedSettings,
): Promise<Diagnosis[]> {
  try {
    const vault = new SharedVault(context, settings)
    const { keys } = vault
    const [members, found] = await Promise.all([
      vault.client.status(),
      inTime(readAndProve(vault), context).catch((error: unknown) => {
        if (error instanceof CliError) return error
        throw error
      }),
    ])
    const silent = members.filter(
      ({ version, isElsewhere, problem: why }) =>
        version === undefined && !isElsewhere && !lacksPermission(why),
    )
    const works = found instanceof CliError ? '' : '; the session works as long as a majority answers'
    const diagnoses = silent.map(({ url, lacksTrust, problem: why }) =>
      lacksTrust
        ? warning(
            'etcd',
            `${url} can't be used: ${why}`,
            `check --store-ca, --store-cert, and the certificate of that member${works}`,
          )
        : warning(
            'etcd',
            `${url} doesn't answer: ${why}`,
            `check that this member runs and can be reached, and look at its logs${works}`,
          ),
    )
    const { identity } = vault.access
    if (identity !== undefined && identity.expiresAt - context.clock.now() < EXPIRY_NOTICE_MS) {
      const what = `the client certificate in ${identity.name} expires on ${formatTime(identity.expiresAt)}`
      diagnoses.push(warning('etcd', what, 'replace it before then: without it, no member answers'))
    }
    const elsewhere = members.filter(({ isElsewhere }) => isElsewhere)
    if (elsewhere.length > 0) diagnoses.push(problem('etcd', otherCluster(elsewhere.map(({ url }) => url))))
    const answering = members.filter(({ version, isElsewhere }) => version !== undefined && !isElsewhere)
    // Every member says the same about the cluster.
    for (const why of new Set(answering.flatMap(({ problem: said }) => said ?? []))) {
      const remedy = 'look at etcdctl alarm list, and at the logs of the members'
      diagnoses.push(
        why.includes('NOSPACE')
          ? problem('etcd', outOfSpace(why))
          : warning('etcd', `etcd says: ${why}`, remedy),
      )
    }
    if (silent.length + elsewhere.length === 0)
      diagnoses.push(ok('etcd', `all ${members.length} members answer`))
    if (found instanceof CliError) return [...diagnoses, problem(check, found)]
    const { key } = vault.access
    const what = isValue(found)
      ? `the session at ${key} is readable with the key ${keyName(keys[0])}; written by ${found.contents.host}`
      : `${key} can be read, and ${found.signedOut === undefined ? 'nothing is there yet' : 'says that every machine was signed out'}`
    return [...diagnoses, ok(check, `etcd: ${what}`)]
  } catch (error) {
    if (error instanceof CliError) return [problem(check, error)]
    throw error
  }
}

/** Some versions tell their status only to users with more permissions: they do answer. */
function lacksPermission(why: string | undefined): boolean {
  return why !== undefined && /permission denied|user name is empty|invalid auth token/.test(why)
}
