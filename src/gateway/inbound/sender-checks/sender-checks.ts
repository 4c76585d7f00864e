/**
 * Who checks where a message comes from, as a session sees it (session/session.ts). A port only; the real one
 * is node/check-line.ts.
 */
import type { JudgedMessage } from '../hooks/message-hook.js';
import type { Verdicts } from './verdicts.js';

export interface SenderChecks {
  /**
   * `pieces`: what the client sent, without our prefix. `done` is called once, within five seconds, maybe
   * before this returns: also where nobody can check (unchecked(), verdicts.ts), for no mail is refused by
   * it.
   */
  check(
    message: Pick<JudgedMessage, 'envelope' | 'isAbandoned'>, pieces: readonly Uint8Array[],
    done: (verdicts: Verdicts) => void,
  ): void;
}
