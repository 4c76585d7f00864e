/** Options of verbs that many of them have: each with a value, as yargs wants it said. */

export function text(describe: string) {
  return { type: 'string', requiresArg: true, describe } as const;
}

export function neededText(describe: string) {
  return { ...text(describe), demandOption: true } as const;
}

export function textOr(value: string, describe: string) {
  return { ...text(describe), default: value } as const;
}

export function number(describe: string) {
  return { type: 'number', requiresArg: true, describe } as const;
}

export function numberOr(value: number, describe: string) {
  return { ...number(describe), default: value } as const;
}

/** Why an order is given, which the log keeps. */
export const REASON = neededText('why, for the log');

/** Of verbs that others stand below: those have no such option. */
export function ownText(describe: string) {
  return { ...text(describe), global: false } as const;
}
