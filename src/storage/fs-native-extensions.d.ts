/** The parts of fs-native-extensions that the lock uses; the package has no types of its own. */
declare module 'fs-native-extensions' {
  /**
   * False where another open file holds the lock. Throws where the file system has no locks. A shared lock needs a file that is
   * open for reading, any other lock one that is open for writing.
   */
  export function tryLock(fd: number, options?: { readonly shared?: boolean }): boolean
}
