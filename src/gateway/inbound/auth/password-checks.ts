/**
 * Passwords, checked by who knows the users (directory.ts): that costs a hash of 0.1 s, or a request, so only
 * so many run at once, the others wait in a bounded line, and more than that hear "later" (454).
 *
 *   known good, less than keptMs ago ─▶ yes, at once
 *   else ─▶ line ─▶ one of checksAtOnce checks ─▶ yes, remembered / no
 *
 * Clients that were right in the last day stand in front, those that were wrong lately behind all others, and
 * one place is never theirs: fifty who guess do not delay one who knows. Those whom a proxy does not tell are
 * not known apart, so a guess puts none of them behind: they have a line of their own, just before that last
 * one, and no right to that place either. Each of the four lines is bounded: who would have to go to the last
 * one while it is full hears "later" too. Who has gone, or has waited for a minute (session.ts), leaves its
 * line. What was good is remembered under a keyed hash, never as it is; a user who is read anew is forgotten.
 */
import { Newest } from '../../../base/newest.js';
import { latin1Bytes, latin1Text } from '../../../base/utf8.js';
import type { Clock, Secrets } from '../../../platform/ports.js';
import { ACCOUNT_CHARACTERS_MAX, charactersOf } from './directory.js';
import type { Account, Directory } from './directory.js';

export type Verdict = 'yes' | 'no' | 'later';

/** `account`: behind a yes. */
export type OnVerdict = (verdict: Verdict, account?: Account) => void;

/** The client waits no more. True: its check never begins; else its verdict comes, or has come. */
export type GiveUp = () => boolean;

export interface PasswordChecksPorts {
  readonly directory: Directory;
  readonly secrets: Secrets;
  readonly clock: Clock;
}

/** Of each line. At 20 hashes a second the last of the first waits 5 s. */
const LINE_MAX = 100;
const CACHE_MAX = 100_000;
/** Clients that were wrong lately, and for how long that counts. */
const WRONG_MAX = 10_000;
const WRONG_MS = 600_000;
/** Clients that were right, and for how long that counts. */
const RIGHT_MAX = 100_000;
const RIGHT_MS = 86_400_000;

interface Check {
  readonly name: string;
  readonly password: string;
  readonly clientKey: string;
  readonly done: OnVerdict;
}

export class PasswordChecks {
  readonly #ports: PasswordChecksPorts;
  readonly #cacheKey: Uint8Array;
  /** By keyed hash of name and password: whose it is, and until when. */
  readonly #good = new Newest<{ readonly account: Account; readonly untilMs: number }>(
    CACHE_MAX, ACCOUNT_CHARACTERS_MAX,
  );
  /** By client: until when it stands behind the others. */
  readonly #wrong = new Newest<number>(WRONG_MAX);
  /** By client: until when it stands in front of the others. */
  readonly #right = new Newest<number>(RIGHT_MAX);
  readonly #lineOfRight: Check[] = [];
  readonly #line: Check[] = [];
  readonly #lineOfUnknown: Check[] = [];
  readonly #lineOfWrong: Check[] = [];
  #running = 0;
  /** Of them, those of the last two lines. */
  #guessesRunning = 0;

  constructor(ports: PasswordChecksPorts) {
    this.#ports = ports;
    this.#cacheKey = ports.secrets.randomBytes(32);
  }

  /** `done` may be called before this returns. */
  check(name: string, password: string, clientKey: string, done: OnVerdict): GiveUp {
    const nowMs = this.#ports.clock.nowMs();
    const check = { name, password, clientKey, done };
    const known = this.#good.get(this.#keyOf(name, password));
    const isKnown = known !== undefined && known.untilMs > nowMs;
    if (isKnown && this.#ports.directory.addressesOf(known.account) !== undefined) done('yes', known.account);
    else if (this.#join(this.#lineOf(clientKey, nowMs), check)) this.#begin();
    return () => this.#leave(check);
  }

  /** From now on it stands behind the others. */
  onWrong(clientKey: string): void {
    this.#wrong.set(clientKey, this.#ports.clock.nowMs() + WRONG_MS);
  }

  /** False: the line is full, and it is told so. */
  #join(line: Check[], check: Check): boolean {
    const hasRoom = line.length < LINE_MAX;
    if (hasRoom) line.push(check);
    else check.done('later');
    return hasRoom;
  }

  /** True: it stood in a line. */
  #leave(check: Check): boolean {
    for (const line of [this.#lineOfRight, this.#line, this.#lineOfUnknown, this.#lineOfWrong]) {
      const at = line.indexOf(check);
      if (at < 0) continue;
      line.splice(at, 1);
      return true;
    }
    return false;
  }

  /** Who was both lately shares an address with somebody; '' is all whom a proxy did not tell. */
  #lineOf(clientKey: string, nowMs: number): Check[] {
    if (clientKey === '') return this.#lineOfUnknown;
    const isRight = (this.#right.get(clientKey) ?? -Infinity) > nowMs;
    const isWrong = (this.#wrong.get(clientKey) ?? -Infinity) > nowMs;
    if (isRight === isWrong) return this.#line;
    return isRight ? this.#lineOfRight : this.#lineOfWrong;
  }

  #nextKnown(): Check | undefined {
    const nowMs = this.#ports.clock.nowMs();
    const right = this.#lineOfRight.shift();
    if (right !== undefined) return right;
    for (let check = this.#line.shift(); check !== undefined; check = this.#line.shift()) {
      // Wrong meanwhile: the guesses that one client has in line cost one hash before it stands behind.
      if (this.#lineOf(check.clientKey, nowMs) !== this.#lineOfWrong) return check;
      this.#join(this.#lineOfWrong, check);
    }
    return undefined;
  }

  #begin(): void {
    const { checksAtOnce } = this.#ports.directory;
    while (this.#running < checksAtOnce) {
      const known = this.#nextKnown();
      const mayGuess = this.#guessesRunning < Math.max(1, checksAtOnce - 1);
      const guess = known === undefined && mayGuess
        ? this.#lineOfUnknown.shift() ?? this.#lineOfWrong.shift() : undefined;
      const check = known ?? guess;
      if (check === undefined) return;
      const guesses = guess === undefined ? 0 : 1;
      this.#running++;
      this.#guessesRunning += guesses;
      void this.#run(check).then((said) => {
        this.#running--;
        this.#guessesRunning -= guesses;
        if (typeof said === 'string') check.done(said);
        else check.done('yes', said);
        this.#begin();
      });
    }
  }

  async #run({ name, password, clientKey }: Check): Promise<Account | Exclude<Verdict, 'yes'>> {
    const { clock, directory } = this.#ports;
    const key = this.#keyOf(name, password);
    let account: Account | undefined;
    try {
      account = await directory.check(name, password, this.#good.get(key)?.account);
    } catch {
      return 'later';
    }
    if (account === undefined) {
      this.#good.delete(key);
      this.onWrong(clientKey);
      return 'no';
    }
    const nowMs = clock.nowMs();
    this.#right.set(clientKey, nowMs + RIGHT_MS);
    this.#good.set(key, { account, untilMs: nowMs + directory.keptMs }, charactersOf(account));
    return account;
  }

  #keyOf(name: string, password: string): string {
    const { secrets } = this.#ports;
    const keyOfName = secrets.hmacSha256(this.#cacheKey, wide(name));
    const hash = secrets.hmacSha256(keyOfName, wide(password));
    return latin1Text(hash, 0, hash.length);
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
