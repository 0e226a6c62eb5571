export { createListWriter, type ListWriter } from './output.ts'
