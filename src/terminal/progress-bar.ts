export { renderBar } from './progress.ts'
