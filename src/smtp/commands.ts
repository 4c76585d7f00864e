/**
 * The commands of an SMTP or LMTP client as they go over the wire, by what the peer offers: the one place
 * that writes them, for deliveries (gateway/outbound/pure) and for `send` (load).
 *
 *   EHLO name
 *   AUTH PLAIN base64; AUTH LOGIN                                  RFC 4954 4, 4616 2
 *   MAIL FROM:<reverse-path> SIZE=n BODY=8BITMIME SMTPUTF8         RFC 5321 4.1.1.2, 1870, 6152, 6531
 *        REQUIRETLS AUTH=<> RET=FULL ENVID=x                       RFC 8689, 4954 5, 3461
 *   RCPT TO:<forward-path> NOTIFY=SUCCESS,FAILURE ORCPT=rfc822;y   RFC 5321 4.1.1.3, 3461
 *
 * Addresses were looked at by kindOfText() of write-buffer.ts: what can't stand in a command is not sent. A
 * parameter that can't is left out: better a plain report than no mail. Content: content-lines.ts,
 * write-buffer.ts. Pure.
 */
import { base64Text } from '../base/base64.js';
import { utf8Bytes } from '../base/utf8.js';
import {
  CAN_8BITMIME, CAN_AUTH_LOGIN, CAN_AUTH_PLAIN, CAN_DSN, CAN_REQUIRETLS, CAN_SIZE, HAS_AUTHENTICATED,
} from './capabilities.js';
import type { Capabilities } from './capabilities.js';
import { TEXT_UNSENDABLE, kindOfText } from './write-buffer.js';
import type { WriteBuffer } from './write-buffer.js';

/** What a transaction needs of the peer, as bits. */
export const NEEDS_8BITMIME = 1;
export const NEEDS_SMTPUTF8 = 2;
export const NEEDS_REQUIRETLS = 4;

export const STARTTLS = 'STARTTLS\r\n';
export const DATA = 'DATA\r\n';
export const RSET = 'RSET\r\n';
export const QUIT = 'QUIT\r\n';
/** Behind DATA and its 354: a content without a byte. */
export const LONE_DOT = '.\r\n';

export function hello(verb: 'EHLO' | 'HELO' | 'LHLO', name: string): string {
  return `${verb} ${name}\r\n`;
}

/** Of a command line, with its CRLF (RFC 5321 4.5.3.1.4). */
const COMMAND_OCTETS_MAX = 512;

/** With the initial response, so that one reply ends it. */
export function authPlain(user: string, password: string): string {
  return `AUTH PLAIN ${base64Of(`\0${user}\0${password}`)}\r\n`;
}

/**
 * By the first mechanism that the peer offers, the first line at once and each other one when 334 asks for
 * it; none where it offers neither. What makes a command line too long is a line of its own (RFC 4954 4).
 */
export function authLines({ bits }: Capabilities, user: string, password: string): readonly string[] {
  if ((bits & CAN_AUTH_PLAIN) !== 0) {
    const whole = authPlain(user, password);
    if (whole.length <= COMMAND_OCTETS_MAX) return [whole];
    return ['AUTH PLAIN\r\n', whole.slice('AUTH PLAIN '.length)];
  }
  if ((bits & CAN_AUTH_LOGIN) === 0) return [];
  return ['AUTH LOGIN\r\n', `${base64Of(user)}\r\n`, `${base64Of(password)}\r\n`];
}

function base64Of(text: string): string {
  return base64Text(utf8Bytes(text));
}

/** `ret`: FULL, HDRS or ''; `envid`: xtext as received, or ''. */
export function putMail(
  into: WriteBuffer, peer: Capabilities, reversePath: string, contentBytes: number, needs: number,
  ret: string, envid: string,
): void {
  into.ascii('MAIL FROM:<');
  into.text(reversePath);
  into.ascii('>');
  if ((peer.bits & CAN_SIZE) !== 0) into.ascii(` SIZE=${contentBytes}`);
  if ((needs & NEEDS_8BITMIME) !== 0 && (peer.bits & CAN_8BITMIME) !== 0) into.ascii(' BODY=8BITMIME');
  if ((needs & NEEDS_SMTPUTF8) !== 0) into.ascii(' SMTPUTF8');
  if ((needs & NEEDS_REQUIRETLS) !== 0 && (peer.bits & CAN_REQUIRETLS) !== 0) into.ascii(' REQUIRETLS');
  // Who submitted it first is not known: what clients say of that is not believed (RFC 4954 5).
  if ((peer.bits & HAS_AUTHENTICATED) !== 0) into.ascii(' AUTH=<>');
  if ((peer.bits & CAN_DSN) !== 0) {
    putParameter(into, ' RET=', ret);
    putParameter(into, ' ENVID=', envid);
  }
  into.ascii('\r\n');
}

/** `notify`: the words of NOTIFY or ''; `orcpt`: with its address type, or ''. */
export function putRcpt(
  into: WriteBuffer, peer: Capabilities, address: string, notify: string, orcpt: string,
): void {
  into.ascii('RCPT TO:<');
  into.text(address);
  into.ascii('>');
  if ((peer.bits & CAN_DSN) !== 0) {
    putParameter(into, ' NOTIFY=', notify);
    putParameter(into, ' ORCPT=', orcpt);
  }
  into.ascii('\r\n');
}

function putParameter(into: WriteBuffer, name: string, value: string): void {
  if (value === '' || kindOfText(value) === TEXT_UNSENDABLE || value.includes(' ')) return;
  into.ascii(name);
  into.text(value);
}
