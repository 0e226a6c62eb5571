import { commandLine } from '../shell-quote.ts'

/** For the callers that are left. */
export function withGivenOptions(text: string, _argv: readonly string[]): string {
  return text
}

export function commandWith(
  argv: readonly string[],
  values: Readonly<Record<string, string>>,
  platform: NodeJS.Platform,
): string {
  return commandLine([...argv, ...Object.entries(values).flat()], platform)
}
