/**
 * Hooks: who is asked about a whole message right before it is submitted. Ports and their words only; the
 * chain of them is in hook-chain.ts, the kinds in node/rspamd-hook.ts and node/module-hook.ts, the wait
 * in session/session.ts.
 */
import type { Refusal } from '../session/replies.js';
import type { HeaderField } from './prefix-fields.js';

/** Who sent a message, and to whom. */
export interface JudgedEnvelope {
  /** As the client will read it in its 250. */
  readonly queueId: string;
  /**
   * Address of the client: the one that PROXY or XCLIENT told, where one of them is believed; '': who may
   * tell it did not, and the address of that one says nothing of the sender.
   */
  readonly client: string;
  readonly helo: string;
  /** Who has authenticated; '' nobody. */
  readonly user: string;
  /** "TLSv1.3"; '' in clear. */
  readonly tlsVersion: string;
  /** '' is the null reverse-path. */
  readonly reversePath: string;
  /**
   * As the client named them, <postmaster> with our host name behind it: what a header is compared with, and
   * may be told to who reads it.
   */
  readonly recipients: readonly string[];
  /** Where it goes: what aliases lead to, not their names. */
  readonly destinations: readonly string[];
}

/** A message as a hook sees it, complete and not submitted yet. */
export interface JudgedMessage {
  readonly envelope: JudgedEnvelope;
  /** The prefix, then what the client sent. Stays as it is, and counted as memory, until the verdict. */
  readonly content: readonly Uint8Array[];
  readonly contentBytes: number;
  /** The client has gone: nobody waits for the verdict, and the message will not be submitted. */
  readonly isAbandoned: boolean;
}

/**
 * What a hook says. `text`: for the client; whatever it holds, it is made safe (replies.ts). `fields` are put
 * in front all, or the hook has failed. Behind a `mark`, the gateway's own words on what the hook said, they
 * are put in front as far as there is room: for the mark itself there always is.
 */
export type HookVerdict =
  | {
    readonly action: 'accept';
    readonly fields: readonly HeaderField[];
    readonly mark?: readonly HeaderField[];
  }
  | { readonly action: 'refuse' | 'defer'; readonly text: string };

/**
 * `isTooMuch`: it said more than is read. What a sender writes may make it do so, so that such a message is
 * told to try later, too: on_failure: accept would take it unseen.
 */
interface Failure {
  readonly action: 'failed';
  readonly why: string;
  readonly isTooMuch?: boolean;
}

/**
 * Or why it can't be had: it failed, and the operator has said what happens then (on_failure); or there is no
 * place for one more message, which is told to try later in any case: what could be provoked by sending much
 * must not let anything through unseen. Or its client has gone, and nobody wants to know.
 */
export type HookAnswer =
  | HookVerdict
  | Failure
  | { readonly action: 'busy' | 'abandoned' };

export interface MessageHook {
  readonly name: string;
  /** `done` is called once, maybe before this returns. */
  ask(message: JudgedMessage, done: (answer: HookAnswer) => void): void;
  close(): void;
}

/** What the session asks: all hooks as one. */
export interface MessageHooks {
  /**
   * `done` is called once, maybe before this returns: why the message is not taken, or the octets that are
   * put in front of it.
   */
  judge(message: JudgedMessage, done: (refusal: Refusal | undefined, fields: Uint8Array) => void): void;
}
