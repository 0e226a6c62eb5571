export { formatTime, relativeTime } from './time.ts'
