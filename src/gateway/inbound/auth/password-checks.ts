/**
 * Passwords against the verifiers of users: a hash costs 0.1 s of a thread on purpose, so only so many run at
 * once, the others wait in a bounded line, and more than that hear "later" (454).
 *
 *   known good, less than CACHE_MS ago ─▶ yes, at once
 *   else ─▶ line ─▶ one of AT_ONCE hashes ─▶ yes, remembered / no
 *
 * Clients that were wrong lately stand behind all others: fifty who guess do not delay one who knows. What
 * was good is remembered under a keyed hash, never as it is; a changed verifier forgets it. Unknown names
 * cost a hash, too.
 */
import { latin1Bytes, latin1Text } from '../../../base/utf8.js';
import type { Clock, Secrets } from '../../../platform/ports.js';
import type { ScramVerifier, ScryptVerifier, User } from './users.js';

export type Verdict = 'yes' | 'no' | 'later';

/** Derives the key of a verifier from a password, outside the loop's thread. */
export type DeriveKey = (password: string, verifier: ScryptVerifier | ScramVerifier) => Promise<Uint8Array>;

export interface PasswordChecksPorts {
  readonly find: (name: string) => User | undefined;
  readonly deriveKey: DeriveKey;
  readonly secrets: Secrets;
  readonly clock: Clock;
}

const AT_ONCE = 2;
/** At 20 hashes a second the last of them waits 5 s. */
const LINE_MAX = 100;
const CACHE_MS = 600_000;
const CACHE_MAX = 100_000;
/** Clients that were wrong lately. */
const WRONG_MAX = 10_000;

/** For names that nobody has. */
const NOBODY: ScryptVerifier = {
  kind: 'scrypt', logCost: 15, blockSize: 8, parallelization: 1,
  salt: new Uint8Array(16), hash: new Uint8Array(32),
};

interface Check {
  readonly name: string;
  readonly password: string;
  readonly clientKey: string;
  readonly done: (verdict: Verdict) => void;
}

export class PasswordChecks {
  readonly #ports: PasswordChecksPorts;
  readonly #cacheKey: Uint8Array;
  /** By keyed hash of name and password: the verifier that it fitted, and until when. Oldest first. */
  readonly #good = new Map<string, { readonly verifier: User['verifier']; readonly untilMs: number }>();
  /** By client: until when it stands behind the others. Oldest first. */
  readonly #wrong = new Map<string, number>();
  readonly #line: Check[] = [];
  readonly #lineOfWrong: Check[] = [];
  #running = 0;

  constructor(ports: PasswordChecksPorts) {
    this.#ports = ports;
    this.#cacheKey = ports.secrets.randomBytes(32);
  }

  /** `done` may be called before this returns. */
  check(name: string, password: string, clientKey: string, done: (verdict: Verdict) => void): void {
    const nowMs = this.#ports.clock.nowMs();
    const user = this.#ports.find(name);
    const known = this.#good.get(this.#keyOf(name, password));
    const isKnown = user !== undefined && known?.verifier === user.verifier && known.untilMs > nowMs;
    if (isKnown) return done('yes');
    if (this.#line.length + this.#lineOfWrong.length >= LINE_MAX) return done('later');
    const isWrong = (this.#wrong.get(clientKey) ?? -Infinity) > nowMs;
    (isWrong ? this.#lineOfWrong : this.#line).push({ name, password, clientKey, done });
    this.#begin();
  }

  #begin(): void {
    while (this.#running < AT_ONCE) {
      const check = this.#line.shift() ?? this.#lineOfWrong.shift();
      if (check === undefined) return;
      this.#running++;
      void this.#run(check).then((verdict) => {
        this.#running--;
        check.done(verdict);
        this.#begin();
      });
    }
  }

  async #run({ name, password, clientKey }: Check): Promise<Verdict> {
    const { secrets, clock, find, deriveKey } = this.#ports;
    const user = find(name);
    const verifier = user?.verifier ?? NOBODY;
    let key: Uint8Array;
    try {
      key = await deriveKey(password, verifier);
    } catch {
      return 'later';
    }
    const isRight = secrets.equal(key, verifier.kind === 'scrypt' ? verifier.hash : verifier.storedKey);
    const untilMs = clock.nowMs() + CACHE_MS;
    if (!isRight || user === undefined) {
      remember(this.#wrong, clientKey, untilMs, WRONG_MAX);
      return 'no';
    }
    remember(this.#good, this.#keyOf(name, password), { verifier, untilMs }, CACHE_MAX);
    return 'yes';
  }

  #keyOf(name: string, password: string): string {
    const { secrets } = this.#ports;
    const keyOfName = secrets.hmacSha256(this.#cacheKey, wide(name));
    const hash = secrets.hmacSha256(keyOfName, wide(password));
    return latin1Text(hash, 0, hash.length);
  }
}

/** As the newest; the oldest goes when there are too many. */
function remember<V>(map: Map<string, V>, key: string, value: V, most: number): void {
  map.delete(key);
  map.set(key, value);
  if (map.size <= most) return;
  for (const oldest of map.keys()) {
    map.delete(oldest);
    return;
  }
}

/** Two bytes a character: different texts give different bytes. */
function wide(text: string): Uint8Array {
  let narrow = '';
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    narrow += String.fromCharCode(code >> 8, code & 0xff);
  }
  return latin1Bytes(narrow);
}
