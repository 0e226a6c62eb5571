/**
 * The operating system's file locks: flock, OFD locks or LockFileEx. Loading this throws where there are none for this
 * machine.
 */
export { tryLock } from 'fs-native-extensions'
