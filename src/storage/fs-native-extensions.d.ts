/** Type of fs-native-extensions, which comes without types; has only the function that this program calls. */
declare module 'fs-native-extensions' {
  const locks: {
    /** Locks an open file without waiting; false if another open file holds the lock. Throws if the file system has no locks. */
    tryLock(fd: number): boolean
  }
  export default locks
}
