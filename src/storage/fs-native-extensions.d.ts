/** Types of the one function of fs-native-extensions that this program uses; the package has none of its own. */
declare module 'fs-native-extensions' {
  const locks: {
    /** Tries to lock an open file; false if another open file holds the lock. Throws if the file system has no locks. */
    tryLock(fd: number): boolean
  }
  export default locks
}
