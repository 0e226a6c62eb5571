/**
 * The operating system's file locks: flock, OFD locks or LockFileEx. Loading this module throws on a system without them.
 */
export { tryLock } from 'fs-native-extensions'
