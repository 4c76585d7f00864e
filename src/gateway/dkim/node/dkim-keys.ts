/**
 * The keys that messages are signed with (`dkim` of the configuration): one file each, PEM of PKCS #1 or
 * PKCS #8, which nobody but its owner and group may read. Judged by `config check`, by the start and by a
 * reload alike; looked at again while the gateway runs. A file that can't be used never replaces a key that
 * can. To read a key takes a millisecond: a reload reads those that are new, a few in a turn of the loop.
 *
 *   RSA      2048 bits or more (RFC 8301 3.2)
 *   Ed25519  beside an RSA key of the same domain only: readers that don't know it (RFC 8463 is newer than
 *            many) would take the message for unsigned
 */
import { createPrivateKey } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { errorText } from '../../../base/error-text.js';
import { tlsErrorText } from '../../../platform/node/certificates.js';
import { FollowedFile } from '../../../platform/node/changing-files.js';
import { inSteps } from '../../../platform/node/in-steps.js';
import { readSecretFile } from '../../../platform/node/secret-file.js';
import type { EventLog } from '../../../platform/ports.js';
import type { DkimAlgorithm } from '../signature-field.js';

export interface DkimKeyOptions {
  /** Lower-case A-labels. */
  readonly domain: string;
  readonly selector: string;
  readonly keyFile: string;
  /** From a signature until it ends (x=); undefined: it does not. */
  readonly expiresAfterMs: number | undefined;
}

export interface DkimKey extends DkimKeyOptions {
  readonly algorithm: DkimAlgorithm;
  readonly key: KeyObject;
}

const RSA_BITS_MIN = 2048;
const KEY_BYTES_MAX = 64 * 1024;
const LOOK_MS = 1000;
/** Some 2 ms of a turn; ten thousand keys are looked at in less than a minute. */
const LOOKED_AT_ONCE = 256;

/** Of a turn that a reload reads keys in; ten thousand take seconds. */
const READING_MS = 5;

/** What is expected of the file of each. */
export const KEY_WANTED = 'a private key in PEM, RSA of 2048 bits or more, or Ed25519 beside one';

/** Throws an Error that names the file. */
function readKey(file: string): KeyObject {
  const text = readSecretFile(file, 'a key', KEY_BYTES_MAX);
  try {
    return createPrivateKey(text);
  } catch (error) {
    throw new Error(`'${file}' is no private key in PEM: ${tlsErrorText(error)}`);
  }
}

/** Throws an Error that names the file. */
export function readDkimKey(options: DkimKeyOptions): DkimKey {
  const { keyFile } = options;
  const key = readKey(keyFile);
  const { asymmetricKeyType: type = 'unknown', asymmetricKeyDetails: details } = key;
  if (type === 'ed25519') return { ...options, algorithm: 'ed25519-sha256', key };
  if (type !== 'rsa') throw new Error(`'${keyFile}' is a key of type ${type}; DKIM knows RSA and Ed25519`);
  const bits = details?.modulusLength ?? 0;
  if (bits < RSA_BITS_MIN) {
    const least = `${String(RSA_BITS_MIN)} or more are needed (RFC 8301)`;
    throw new Error(`'${keyFile}' is an RSA key of ${String(bits)} bits; ${least}`);
  }
  return { ...options, algorithm: 'rsa-sha256', key };
}

/** Why it can't be used beside all others of its domain, which can be read; '' when it can. */
export function whyNotBeside(key: DkimKey, ofDomain: readonly DkimKey[]): string {
  const alike = ofDomain.find(({ algorithm }) => algorithm === key.algorithm);
  if (alike !== key) {
    const kind = key.algorithm === 'rsa-sha256' ? 'RSA' : 'Ed25519';
    return `a second ${kind} key of ${key.domain}; it may have one, and one of the other kind`;
  }
  if (ofDomain.some(({ algorithm }) => algorithm === 'rsa-sha256')) return '';
  return `an Ed25519 key alone; ${key.domain} needs an RSA key too: many who verify know no other, and `
    + 'would take its mail for unsigned';
}

export interface DkimKeysPorts {
  readonly log: EventLog;
  /** Some file can't be used, and the key that was read before stays; or all can. Undefined: no key is. */
  onRead(isStale: boolean | undefined): void;
}

/** One that can't be used: which of the list, and why. */
export interface UnusableKey {
  readonly index: number;
  readonly why: string;
}

export class DkimKeys {
  readonly #ports: DkimKeysPorts;
  /** Ed25519 in front of RSA. */
  readonly #byDomain = new Map<string, readonly DkimKey[]>();
  #followed: readonly FollowedFile<DkimKey>[] = [];
  readonly #timer: NodeJS.Timeout;
  #next = 0;

  /** Throws as readDkimKey(). */
  constructor(options: readonly DkimKeyOptions[], ports: DkimKeysPorts) {
    this.#ports = ports;
    this.#use(options.map(followedKey));
    this.#timer = setInterval(() => { this.#look(); }, LOOK_MS).unref();
  }

  get areNone(): boolean { return this.#byDomain.size === 0; }

  get domains(): readonly string[] { return [...this.#byDomain.keys()]; }

  /** Ed25519 first, as RFC 8463 A.3 has it; empty when the domain has none. */
  of(domain: string): readonly DkimKey[] {
    return this.#byDomain.get(domain) ?? [];
  }

  /** Other keys, ready to be used by a call; nothing has changed before. Or one that can't be used. */
  async prepare(options: readonly DkimKeyOptions[]): Promise<(() => void) | UnusableKey> {
    const followed = await inSteps(this.#read(options));
    return 'why' in followed ? followed : () => { this.#use(followed); };
  }

  close(): void {
    clearInterval(this.#timer);
  }

  *#read(options: readonly DkimKeyOptions[]): Generator<undefined, FollowedFile<DkimKey>[] | UnusableKey> {
    const known = new Map(this.#followed.map((one) => [textOf(one.current), one]));
    const followed: FollowedFile<DkimKey>[] = [];
    // As read or kept here: a file may change meanwhile, and its key with it, to one of the same kind.
    const keys: DkimKey[] = [];
    const ofDomain = new Map<string, DkimKey[]>();
    let turnMs = performance.now();
    for (const [index, one] of options.entries()) {
      const before = known.get(textOf(one));
      try {
        const read = before?.isCurrent === true ? before : followedKey(one);
        followed.push(read);
        keys.push(read.current);
      } catch (error) {
        return { index, why: errorText(error) };
      }
      ofDomain.set(one.domain, [...ofDomain.get(one.domain) ?? [], ...keys.slice(-1)]);
      if (performance.now() - turnMs < READING_MS) continue;
      yield;
      turnMs = performance.now();
    }
    for (const [index, key] of keys.entries()) {
      const why = whyNotBeside(key, ofDomain.get(key.domain) ?? []);
      if (why !== '') return { index, why };
    }
    return followed;
  }

  #use(followed: readonly FollowedFile<DkimKey>[]): void {
    this.#followed = followed;
    this.#byDomain.clear();
    for (const { current } of followed) this.#put(current);
    this.#ports.onRead(followed.length === 0 ? undefined : false);
  }

  #put(key: DkimKey): void {
    const others = this.of(key.domain).filter(({ algorithm }) => algorithm !== key.algorithm);
    this.#byDomain.set(key.domain, key.algorithm === 'rsa-sha256' ? [...others, key] : [key, ...others]);
  }

  /** Some of them in turn. */
  #look(): void {
    const { log, onRead } = this.#ports;
    let hasChanged = false;
    for (let left = Math.min(LOOKED_AT_ONCE, this.#followed.length); left > 0; left--) {
      const followed = this.#followed[this.#next++ % this.#followed.length];
      if (followed?.look() !== true) continue;
      hasChanged = true;
      const { current: { domain, selector }, why } = followed;
      if (why === '') {
        this.#put(followed.current);
        log.info('dkim', 'a key for signatures was read anew', { domain, selector });
      } else {
        log.error('dkim', 'a new key for signatures can\'t be used, the old one stays', {
          domain, selector, why,
        });
      }
    }
    if (hasChanged) onRead(this.#followed.some(({ why }) => why !== ''));
  }
}

/** Of two that are alike nothing differs but what the file holds. */
function textOf({ domain, selector, keyFile, expiresAfterMs }: DkimKeyOptions): string {
  return JSON.stringify([domain, selector, keyFile, expiresAfterMs]);
}

/** Throws as readDkimKey(). */
function followedKey(options: DkimKeyOptions): FollowedFile<DkimKey> {
  let algorithm: DkimAlgorithm | undefined;
  return new FollowedFile([options.keyFile], () => {
    const read = readDkimKey(options);
    algorithm ??= read.algorithm;
    if (read.algorithm !== algorithm) throw new Error('it is of the other kind; that needs a reload');
    return read;
  });
}
