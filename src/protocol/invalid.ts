/**
 * What a decoder returns instead of a message when the peer's bytes break a rule. A value,
 * not an exception: a peer must not be able to make us unwind a stack. The connection is closed with
 * MALFORMED and the rule as text.
 */
export class InvalidMessage {
  readonly rule: string;

  constructor(rule: string) {
    this.rule = rule;
  }
}

/** Tells the two results of a decoder apart. */
export function isInvalid(result: unknown): result is InvalidMessage {
  return result instanceof InvalidMessage;
}
