import { describe, expect, test } from 'vitest'
import { evaluate, interpolate, isMet, type Scope } from './expressions.ts'
import { readAssignments, takeCommands } from './runner.ts'

const scope = (failed = false): Scope => ({
  contexts: { inputs: { a: 'A', 'b-c': '' }, steps: { one: { outputs: { x: "it's" } } } },
  failed,
})

const open = '$'.concat('{{')

describe('the runner of composite actions', () => {
  test.each([
    ["inputs.a == 'a'", true],
    ["inputs.b-c != '' || inputs.a", 'A'],
    ["inputs.b-c == '' && !(inputs.a == 'B')", true],
    ["steps.one.outputs.x == 'it''s'", true],
    ["steps.none.outputs.x == ''", true],
    ["format('{0}/{1}', inputs.a, 2)", 'A/2'],
  ])('evaluates %s', (expression, value) => {
    expect(evaluate(expression, scope())).toBe(value)
  })

  test.each(["inputs.a == 'a", 'inputs.a inputs.a', 'unknown.a', 'hashFiles()', "inputs.a == '' &&"])(
    'refuses %s',
    (expression) => expect(() => evaluate(expression, scope())).toThrow(),
  )

  test('interpolates a text, and skips a step after a failure unless its condition asks', () => {
    expect(interpolate(`<${open} inputs.a }}|${open}inputs.b-c}}>`, scope())).toBe('<A|>')
    expect(
      [undefined, "inputs.a == 'A'", 'always()', 'failure()'].map((text) => isMet(text, scope(true))),
    ).toEqual([false, false, true, true])
  })

  test('reads assignments of one line and of several', () => {
    expect(readAssignments('a=b=c\nd<<END\none\n\ntwo\nEND\ne<<X\nX\n')).toEqual({
      a: 'b=c',
      d: 'one\n\ntwo',
      e: '',
    })
    expect(() => readAssignments('d<<END\none\n')).toThrow('delimiter')
  })

  test('takes workflow commands out of the log, except between stop-commands and its token', () => {
    const printed = [
      '  ::error title=a%3Ab::one%0Atwo',
      'text ##[warning]old',
      '::nothing::x',
      '::stop-commands::t0k',
      '::error::inert',
      '::t0k::',
      '::add-mask::secret',
    ].join('\n')
    expect(takeCommands(printed)).toEqual({
      log: '::nothing::x\n::error::inert',
      commands: [
        { command: 'error', properties: { title: 'a:b' }, data: 'one\ntwo' },
        { command: 'warning', properties: {}, data: 'old' },
        { command: 'add-mask', properties: {}, data: 'secret' },
      ],
    })
  })
})
