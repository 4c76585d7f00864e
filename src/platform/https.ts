/**
 * One question by HTTPS to a host of a stranger's, at addresses that the caller has looked up and looked at.
 * The real one is platform/node/https-client.ts.
 *
 * What every implementation promises:
 * - `done` is called exactly once, never before ask() returns, within `withinMs`. Who closes it is told
 *   nothing more.
 * - The server has proved by a certificate that it is `host`; no redirect is followed, nothing is kept.
 */

export interface HttpsQuestion {
  /** In the certificate and in the Host field. */
  readonly host: string;
  readonly path: string;
  /** Tried one after the other. */
  readonly addresses: readonly string[];
  /** Undefined: GET, else POST. */
  readonly body?: { readonly type: string; readonly bytes: Uint8Array } | undefined;
  /** Longer answers to a GET are none; nothing is read of one to a POST. */
  readonly answerBytesMax: number;
  readonly withinMs: number;
}

export type HttpsAnswer = {
  readonly kind: 'answer';
  readonly status: number;
  /** Media type in lower case, without parameters. */
  readonly type: string;
  /** Of an answer to a GET with 200 alone. */
  readonly text: string;
} | {
  readonly kind: 'failed';
  /** One short line. */
  readonly why: string;
  /** Its certificate is not taken. */
  readonly isUntrusted: boolean;
};

export interface Https {
  ask(question: HttpsQuestion, done: (answer: HttpsAnswer) => void): void;
}
