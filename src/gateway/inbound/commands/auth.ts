/**
 * AUTH (RFC 4954): offered on submission listeners, within TLS only.
 *
 *   AUTH mechanism [initial response] ─ 334 challenge ◀─▶ response … ─▶ 235, or 535; "*" gives up
 *
 * Not here: what the mechanisms say (auth/sasl.ts), the check of passwords (auth/password-checks.ts).
 */
import { base64Bytes, base64Text } from '../../../base/base64.js';
import { upperKeyword } from '../../../base/fold-case.js';
import { latin1Bytes, utf8Text } from '../../../base/utf8.js';
import type { AuthResult } from '../../../observability/reception-metrics.js';
import type { Account } from '../auth/directory.js';
import type { Verdict } from '../auth/password-checks.js';
import type { Exchange } from '../auth/sasl.js';
import type { Desk } from '../session/desk.js';
import type { InboundDialog } from '../session/dialog.js';
import * as replies from '../session/replies.js';
import type { Effect } from '../session/replies.js';

/** RFC 4954 4: a response may be so long. */
export const RESPONSE_OCTETS_MAX = 12_288;

export function auth(dialog: InboundDialog, desk: Desk, text: string): Effect {
  const { authenticator } = desk.ports;
  if (authenticator === undefined || !desk.options.isSubmission) return replies.COMMAND_ABSENT;
  if (dialog.tlsVersion === '') return replies.TLS_NEEDED;
  if (dialog.helo === '') return replies.GREET_FIRST;
  if (dialog.user !== '') return replies.AUTHENTICATED_ALREADY;
  if (dialog.transaction !== undefined) return replies.AUTH_IN_TRANSACTION;
  const [, mechanism = '', initial, ...more] = text.split(' ').filter((word) => word !== '');
  if (mechanism === '' || more.length > 0) return replies.AUTH_SYNTAX;
  const exchange = authenticator.exchange(upperKeyword(mechanism));
  if (exchange === undefined) return replies.MECHANISM_UNKNOWN;
  dialog.exchange = exchange;
  if (initial === undefined) return stepped(dialog, desk, exchange, undefined);
  // "=" is a response of no octets (RFC 4954 4).
  return respond(dialog, desk, exchange, initial === '=' ? '' : initial);
}

/** A line of the client in the middle of an exchange. */
export function authResponse(dialog: InboundDialog, desk: Desk, line: string): Effect {
  const { exchange } = dialog;
  if (exchange === undefined || line === '*') return ended(dialog, desk, replies.AUTH_CANCELLED, 'cancelled');
  return respond(dialog, desk, exchange, line);
}

/** The check of a password has come to no good end. */
export function authVerdict(
  dialog: InboundDialog, desk: Desk, user: string, verdict: Exclude<Verdict, 'yes'>,
): Effect {
  if (verdict === 'later') return ended(dialog, desk, { ...replies.AUTH_LATER, user }, 'later');
  return failed(dialog, desk, user);
}

/** It has come to a good one. */
export function authProven(dialog: InboundDialog, desk: Desk, account: Account): Effect {
  dialog.user = account.name;
  dialog.account = account;
  return ended(dialog, desk, replies.AUTHENTICATED, 'ok');
}

/** The client has gone before the check of its password began: what that would have said nobody knows. */
export function authAbandoned(dialog: InboundDialog, desk: Desk, user: string): Effect {
  const why = 'the client has gone before its password was checked';
  return ended(dialog, desk, { ...replies.AUTH_CANCELLED, user, why }, 'cancelled');
}

function respond(dialog: InboundDialog, desk: Desk, exchange: Exchange, text: string): Effect {
  const response = base64Bytes(text);
  if (response === undefined) return ended(dialog, desk, replies.AUTH_MALFORMED, 'cancelled');
  return stepped(dialog, desk, exchange, response);
}

function stepped(
  dialog: InboundDialog, desk: Desk, exchange: Exchange, response: Uint8Array | undefined,
): Effect {
  const step = exchange.next(response);
  switch (step.kind) {
    case 'challenge':
      return replies.challenge(base64Text(latin1Bytes(step.text)));
    case 'password':
      dialog.password = { user: step.user, password: step.password };
      return replies.PASSWORD_CHECKED;
    case 'proven':
      return authProven(dialog, desk, step.account);
    case 'refused':
      // As a password that was checked and is wrong: who guesses by SCRAM stands behind the others too.
      desk.ports.authenticator?.onWrong(dialog.clientKey);
      return failed(dialog, desk, step.user);
    case 'foreign':
      // No password was tried.
      return ended(dialog, desk, { ...replies.AUTH_FOREIGN, user: step.user }, 'cancelled');
    case 'malformed':
      return ended(dialog, desk, replies.AUTH_MALFORMED, 'cancelled');
  }
}

function failed(dialog: InboundDialog, desk: Desk, user: string): Effect {
  dialog.authFailures++;
  const isOften = dialog.authFailures >= replies.AUTH_FAILURES_MAX;
  const refusal = isOften ? replies.AUTH_FAILED_OFTEN : replies.AUTH_FAILED;
  return ended(dialog, desk, { ...refusal, user }, 'failed');
}

function ended(dialog: InboundDialog, desk: Desk, effect: Effect, result: AuthResult): Effect {
  if (dialog.exchange !== undefined) desk.ports.metrics.authEnded(dialog.exchange.mechanism, result);
  dialog.exchange = undefined;
  return effect;
}

/** What the client sent as a line of the exchange; what is no text is no base64 either. */
export function responseText(bytes: Uint8Array, from: number, to: number): string {
  return utf8Text(bytes, from, to) ?? '!';
}
