/** The part of fs-native-extensions that the lock uses; the package has no types of its own. */
declare module 'fs-native-extensions' {
  const locks: {
    /** False where another open file holds the lock. Throws where the file system has no locks. */
    tryLock(fd: number): boolean
  }
  export default locks
}
