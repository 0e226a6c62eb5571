export { formatDuration } from './time.ts'
