/**
 * XCLIENT (https://www.postfix.org/XCLIENT_README.html): a proxy that is listed says whose session it is,
 * before MAIL; then the session begins anew with a greeting, and relay rules and limits go by that client.
 * LOGIN, who has authenticated at the proxy, needs a permission of its own. There is no XFORWARD.
 *
 * A long command comes in several (note 1 there): what an earlier one has said stays, also that the client is
 * not known, until ADDR names another client, of whom nothing is known but what comes with it. Nobody gets
 * more by a later command than he had, but by its own ADDR or LOGIN: who came by AUTH has to come again, and
 * TLS makes a LOGIN forgotten that was said before it.
 */
import ipaddr from 'ipaddr.js';
import { upperKeyword } from '../../../base/fold-case.js';
import type { Desk } from '../session/desk.js';
import type { InboundDialog } from '../session/dialog.js';
import * as replies from '../session/replies.js';
import type { Effect } from '../session/replies.js';

const ATTRIBUTES = new Set(['NAME', 'ADDR', 'PORT', 'PROTO', 'HELO', 'LOGIN', 'DESTADDR', 'DESTPORT']);
const VALUE_CHARACTERS_MAX = 255;
const UNAVAILABLE = ['[UNAVAILABLE]', '[TEMPUNAVAIL]'];
const IPV6 = 'IPV6:';
const XTEXT = /^(?:[\x21-\x2a\x2c-\x7e]|\+[0-9A-F]{2})+$/;
const HEX_PAIRS = /\+([0-9A-F]{2})/g;

/** What EHLO offers to this peer; '' nothing. */
export function xclientOffer(dialog: InboundDialog, desk: Desk): string {
  if (!desk.xclientPeers.has(dialog.peerAddress)) return '';
  return `XCLIENT NAME ADDR PORT PROTO HELO DESTADDR DESTPORT${desk.options.xclientLogin ? ' LOGIN' : ''}`;
}

export function xclient(dialog: InboundDialog, desk: Desk, text: string): Effect {
  if (!desk.xclientPeers.has(dialog.peerAddress)) return replies.XCLIENT_DENIED;
  if (dialog.transaction !== undefined) return replies.AUTH_IN_TRANSACTION;
  const attributes = attributesOf(text);
  if (attributes === undefined) return replies.XCLIENT_SYNTAX;
  const saidLogin = attributes.get('LOGIN');
  if (saidLogin !== undefined && !desk.options.xclientLogin) return replies.LOGIN_DENIED;
  const { remoteAddress, remotePort } = dialog;
  const before = dialog.named ?? { address: remoteAddress, port: remotePort, login: '' };
  const isAnother = attributes.has('ADDR');
  const address = isAnother ? addressOf(attributes.get('ADDR')) : before.address;
  if (address === undefined) return replies.badXclient('ADDR');
  const hasPort = isAnother || attributes.has('PORT');
  const port = hasPort ? portOf(attributes.get('PORT')) : before.port;
  if (port === undefined) return replies.badXclient('PORT');
  const login = saidLogin === undefined && !isAnother ? before.login : known(saidLogin);
  const refusal = dialog.becomeClient({ address, port, login }, isAnother);
  if (refusal !== undefined) return refusal;
  dialog.user = login;
  dialog.account = login === '' ? undefined : desk.ports.authenticator?.find(login);
  return replies.GREETED_ANEW;
}

/** '' when the proxy does not know it. */
function known(value: string | undefined): string {
  return value === undefined || UNAVAILABLE.includes(value) ? '' : value;
}

/** undefined when one is unknown, given twice, or no xtext of printable ASCII. */
function attributesOf(text: string): ReadonlyMap<string, string> | undefined {
  const attributes = new Map<string, string>();
  for (const word of text.split(' ').slice(1)) {
    if (word === '') continue;
    const equals = word.indexOf('=');
    const name = upperKeyword(word.slice(0, equals));
    const value = decoded(word.slice(equals + 1));
    if (equals < 0 || !ATTRIBUTES.has(name) || attributes.has(name) || value === undefined) return undefined;
    attributes.set(name, value);
  }
  return attributes.size === 0 ? undefined : attributes;
}

/** xtext (RFC 3461 4). */
function decoded(value: string): string | undefined {
  if (value.length > VALUE_CHARACTERS_MAX || !XTEXT.test(value)) return undefined;
  const text = value.replace(HEX_PAIRS, (_all, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return /^[\x20-\x7e]*$/.test(text) ? text : undefined;
}

/** 0: the proxy does not know it. */
function portOf(said: string | undefined): number | undefined {
  const value = known(said);
  if (value === '') return 0;
  return /^\d{1,5}$/.test(value) && Number(value) <= 65_535 ? Number(value) : undefined;
}

/** '': the proxy does not know it. */
function addressOf(said: string | undefined): string | undefined {
  const value = known(said);
  if (value === '') return '';
  const isIpv6 = value.toUpperCase().startsWith(IPV6);
  const text = isIpv6 ? value.slice(IPV6.length) : value;
  const isIpv4 = !isIpv6 && ipaddr.IPv4.isValidFourPartDecimal(text);
  const isAddress = isIpv4 || (isIpv6 && ipaddr.IPv6.isValid(text) && !text.includes('%'));
  return isAddress ? ipaddr.process(text).toString() : undefined;
}
