/** Values of GitHub's expressions; `null` is a property that isn't there. */
export type Value = string | number | boolean | null | { readonly [name: string]: Value }

/** What the names in an expression stand for. */
export interface Scope {
  readonly contexts: Readonly<Record<string, Value>>
  /** Whether a step before has failed. */
  readonly failed: boolean
}

const TOKEN = /\s*(?:('(?:[^']|'')*')|(\d+)|([A-Za-z_][\w-]*(?:\.[\w-]+)*)|(==|!=|&&|\|\||[!(),]))/y

/** Replaces each `${{ … }}` in a text. */
export function interpolate(text: string, scope: Scope): string {
  return text.replaceAll(/\$\{\{(.*?)\}\}/gs, (_whole, expression: string) =>
    asText(evaluate(expression, scope)),
  )
}

/** Whether a step with this condition runs: not after a failure, unless the condition asks about that itself. */
export function isMet(condition: string | undefined, scope: Scope): boolean {
  if (condition === undefined) return !scope.failed
  const expression = condition.replace(/^\s*\$\{\{(.*)\}\}\s*$/s, '$1')
  const asksForStatus = /\b(always|success|failure|cancelled)\(\)/.test(expression)
  return (asksForStatus || !scope.failed) && isTrue(evaluate(expression, scope))
}

/** Evaluates an expression of the part of GitHub's language that the action and its documentation use. */
export function evaluate(expression: string, scope: Scope): Value {
  const tokens = tokensOf(expression)
  let at = 0
  const take = (text: string) => tokens[at] === text && ++at > 0
  const need = (text: string) => {
    if (!take(text)) throw new Error(`${text} is missing in: ${expression}`)
  }

  // Both sides are always evaluated: nothing here has effects.
  const or = (): Value => {
    let left = and()
    while (take('||')) {
      const right = and()
      left = isTrue(left) ? left : right
    }
    return left
  }
  const and = (): Value => {
    let left = comparison()
    while (take('&&')) {
      const right = comparison()
      left = isTrue(left) ? right : left
    }
    return left
  }
  const comparison = (): Value => {
    const left = operand()
    if (take('==')) return isEqual(left, operand())
    if (take('!=')) return !isEqual(left, operand())
    return left
  }
  const operand = (): Value => {
    if (take('!')) return !isTrue(operand())
    if (take('(')) {
      const inner = or()
      need(')')
      return inner
    }
    const token = tokens[at++]
    if (token === undefined) throw new Error(`the end is missing in: ${expression}`)
    if (token.startsWith("'")) return token.slice(1, -1).replaceAll("''", "'")
    if (/^\d+$/.test(token)) return Number(token)
    if (token === 'true' || token === 'false') return token === 'true'
    if (take('(')) return call(token, argumentsOfCall())
    return lookUp(token)
  }
  const argumentsOfCall = (): Value[] => {
    const values: Value[] = []
    if (take(')')) return values
    do values.push(or())
    while (take(','))
    need(')')
    return values
  }
  const call = (name: string, [first = null, ...others]: Value[]): Value => {
    switch (name) {
      case 'always':
        return true
      case 'success':
        return !scope.failed
      case 'failure':
        return scope.failed
      case 'format':
        return asText(first).replaceAll(/\{(\d+)\}/g, (_whole, index) =>
          asText(others[Number(index)] ?? null),
        )
      default:
        throw new Error(`the runner has no function ${name}`)
    }
  }
  const lookUp = (path: string): Value => {
    const [root = '', ...names] = path.split('.')
    if (!Object.hasOwn(scope.contexts, root)) throw new Error(`there is no context ${root}`)
    return names.reduce<Value>(
      (value, name) => (typeof value === 'object' && value !== null ? (value[name] ?? null) : null),
      scope.contexts[root] ?? null,
    )
  }

  const value = or()
  if (at < tokens.length) throw new Error(`"${tokens[at]}" is unexpected in: ${expression}`)
  return value
}

function tokensOf(expression: string): string[] {
  const text = expression.trim()
  const tokens: string[] = []
  TOKEN.lastIndex = 0
  while (TOKEN.lastIndex < text.length) {
    const start = TOKEN.lastIndex
    const match = TOKEN.exec(text)
    if (match === null) throw new Error(`can't read "${text.slice(start)}"`)
    tokens.push(match[0].trim())
  }
  return tokens
}

const isTrue = (value: Value) => value !== null && value !== '' && value !== false && value !== 0

/** As GitHub compares: without regard to case, and a property that isn't there is empty. */
function isEqual(one: Value, other: Value): boolean {
  return asText(one).toLowerCase() === asText(other).toLowerCase()
}

function asText(value: Value): string {
  return value === null ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value)
}
