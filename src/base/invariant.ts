/**
 * Invariants: conditions that only a bug of ours can break. They stay on in production and stop the
 * process, because memory in an unknown state must not be mirrored. Never used on a peer's bytes: those
 * are validated and answered with a named error instead.
 */

/** A broken invariant: always our bug. */
export class InvariantError extends Error {
  override readonly name = 'InvariantError';
}

/** Throws when `condition` is false. `text` says what must hold. */
export function invariant(condition: boolean, text: string): asserts condition {
  if (!condition) throw new InvariantError(text);
}
