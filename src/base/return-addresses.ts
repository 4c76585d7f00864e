/**
 * Signed variable reverse-paths (VERP) of one route: each recipient of a message gets an address of its own
 * as the reverse-path, and whatever comes back to that says by itself which message it is about. Nobody
 * else can make one, and the day ends it.
 *
 *   alice@example.org   b+hhhhhhhhddiiiiiiiiiiimmmm=example.org=alice@bounces.ours
 *
 *   b       the prefix of the route
 *   h  8    hash of all the rest, by the secret: 40 bits, as of sender-rewriting.ts
 *   d  2    the day it was made
 *   i 11    id of the message (text-id.ts)
 *   m  4    20 bits of a hash of the recipient, so that who a report names can be compared with who it was
 *   the sender, where reports go on to him; else the address ends before it
 *
 * The local part has 64 octets at most (RFC 5321 4.5.3.1.1), so that with the prefix b a sender of 36 octets
 * has room. A longer one, or one that can't stand in it, keeps his own address: then his reports reach him as
 * ever, and only what is made of them here is missing. Pure.
 */
import { dayText, daysSince, shortHash } from './signed-text.js';
import type { Hmac } from './signed-text.js';
import { formatMessageId, parseMessageId } from './text-id.js';

export interface ReturnAddressOptions {
  /** Name of the route. */
  readonly route: string;
  /** Lower-case A-labels. */
  readonly domain: string;
  /** Lower-case letters and digits. */
  readonly prefix: string;
  /** For reports. */
  readonly daysValid: number;
  /** Reports go on to the sender, whom the address must hold. */
  readonly leadsBack: boolean;
}

/** What an address says. All of it was made here. */
export interface ReturnToken {
  readonly messageId: number;
  /** '' where it leads to nobody. */
  readonly sender: string;
  readonly ageDays: number;
  /** Whether it was made for this recipient; wrong once in a million. */
  isOf(recipient: string): boolean;
}

const HASH_CHARACTERS = 8;
const MARK_CHARACTERS = 4;
const DAY_AT = HASH_CHARACTERS;
const ID_AT = DAY_AT + 2;
const MARK_AT = ID_AT + 11;
const SENDER_AT = MARK_AT + MARK_CHARACTERS;
/** RFC 5321 4.5.3.1.1. */
const LOCAL_PART_OCTETS_MAX = 64;
/** A dot-string (RFC 5321 4.1.2) that hides no route for servers that look for one. */
const PLAIN_LOCAL_PART = /^[a-z0-9#$&'*+/=?^_`{|}~.-]+$/i;
const PLAIN_DOMAIN = /^[a-z0-9.-]+$/i;

export class ReturnAddresses {
  readonly options: ReturnAddressOptions;
  readonly #start: string;
  /** In front of all that is hashed: an address of another route, or of sender-rewriting.ts, is none here. */
  readonly #scope: string;
  readonly #keys: readonly Uint8Array[];
  readonly #hmac: Hmac;
  readonly #wallMs: () => number;

  /** `keys`: the first signs, every one of them is known. At least one. */
  constructor(
    options: ReturnAddressOptions, keys: readonly Uint8Array[], hmac: Hmac, wallMs: () => number,
  ) {
    this.options = options;
    this.#start = `${options.prefix}+`;
    this.#scope = `verp:${options.prefix}@${options.domain}:`;
    this.#keys = keys;
    this.#hmac = hmac;
    this.#wallMs = wallMs;
  }

  /** The reverse-path for one recipient of a message; that of its sender when it can't be written. */
  written(messageId: number, recipient: string, sender: string): string {
    const [key] = this.#keys;
    const behind = this.options.leadsBack ? senderText(sender) : '';
    if (key === undefined || sender === '' || behind === undefined) return sender;
    const id = formatMessageId(messageId).toLowerCase();
    const signed = `${dayText(this.#wallMs())}${id}${this.#mark(key, id, recipient)}${behind}`;
    const local = `${this.#start}${this.#hash(key, signed)}${signed}`;
    return local.length <= LOCAL_PART_OCTETS_MAX ? `${local}@${this.options.domain}` : sender;
  }

  /** Whether the local part of an address at our domain says that it is one of these. */
  isClaimed(local: string): boolean {
    return local.slice(0, this.#start.length).toLowerCase() === this.#start;
  }

  /** What it says; undefined when it was not made here. How old it may be is up to who asks. */
  read(local: string): ReturnToken | undefined {
    if (!this.isClaimed(local) || local.length > LOCAL_PART_OCTETS_MAX) return undefined;
    const text = local.slice(this.#start.length);
    const [hash, signed] = [text.slice(0, HASH_CHARACTERS).toLowerCase(), text.slice(HASH_CHARACTERS)];
    const key = this.#keys.find((each) => this.#hash(each, signed) === hash);
    if (key === undefined) return undefined;
    const id = text.slice(ID_AT, MARK_AT).toLowerCase();
    const mark = text.slice(MARK_AT, SENDER_AT).toLowerCase();
    const ageDays = daysSince(text.slice(DAY_AT, ID_AT), this.#wallMs());
    const messageId = parseMessageId(id);
    const sender = senderOf(text.slice(SENDER_AT));
    if (messageId === undefined || ageDays === undefined || sender === undefined) return undefined;
    return { messageId, sender, ageDays, isOf: (recipient) => this.#mark(key, id, recipient) === mark };
  }

  #hash(key: Uint8Array, signed: string): string {
    return shortHash(this.#hmac, key, `${this.#scope}${signed}`, HASH_CHARACTERS);
  }

  #mark(key: Uint8Array, id: string, recipient: string): string {
    return shortHash(this.#hmac, key, `${this.#scope}${id}:${recipient}`, MARK_CHARACTERS);
  }
}

/** "=example.org=alice"; undefined for one that can't be written so. */
function senderText(sender: string): string | undefined {
  const at = sender.lastIndexOf('@');
  const [local, domain] = [sender.slice(0, at), sender.slice(at + 1)];
  if (at <= 0 || !PLAIN_LOCAL_PART.test(local) || !PLAIN_DOMAIN.test(domain)) return undefined;
  return `=${domain}=${local}`;
}

function senderOf(text: string): string | undefined {
  if (text === '') return '';
  const end = text.indexOf('=', 1);
  return text.startsWith('=') && end > 1 ? `${text.slice(end + 1)}@${text.slice(1, end)}` : undefined;
}
