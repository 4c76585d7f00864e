/**
 * SASL exchanges as their server: PLAIN (RFC 4616), LOGIN (draft-murchison-sasl-login) and SCRAM-SHA-256 (RFC
 * 5802, RFC 7677). Each is asked with the client's responses, one after the other, and says what comes next:
 *
 *   challenge   the client answers it
 *   password    to be checked (password-checks.ts)
 *   proven      SCRAM: the user has shown to know the password
 *   refused     name or password is wrong
 *   foreign     the user wants to act as another
 *   malformed   what the client said is no answer to what it was asked
 *
 * An empty password is wrong whoever knows the users: a directory may take it for a bind by nobody, which is
 * never refused (RFC 4513 5.1.2), and RFC 4616 has none.
 * An unknown name gets a salt of its own in SCRAM, the same each time, and what most users have for the rest,
 * so that names can't be told from it. Pure.
 */
import { base64Bytes, base64Text } from '../../../base/base64.js';
import { invariant } from '../../../base/invariant.js';
import { latin1Bytes, utf8Bytes, utf8Text } from '../../../base/utf8.js';
import type { Secrets } from '../../../platform/ports.js';
import { normalized, prepared } from './saslprep.js';
import type { Account } from './directory.js';
import type { ScramVerifier, User, Users } from './users.js';

export type Step =
  | { readonly kind: 'challenge'; readonly text: string }
  | { readonly kind: 'password'; readonly user: string; readonly password: string }
  | { readonly kind: 'proven'; readonly account: Account }
  | { readonly kind: 'refused' | 'foreign'; readonly user: string }
  | { readonly kind: 'malformed' };

export interface Exchange {
  /** Its name in SASL. */
  readonly mechanism: string;
  /** `response`: what the client sent, decoded; undefined: it has sent nothing yet. */
  next(response: Uint8Array | undefined): Step;
}

const MALFORMED: Step = { kind: 'malformed' };
const NONCE_BYTES = 18;

export class PlainExchange implements Exchange {
  readonly mechanism = 'PLAIN';

  next(response: Uint8Array | undefined): Step {
    if (response === undefined) return { kind: 'challenge', text: '' };
    const text = utf8Text(response, 0, response.length);
    const [authorization, user, password, ...more] = text?.split('\0') ?? [];
    if (user === undefined || password === undefined || more.length > 0 || user === '') return MALFORMED;
    const name = prepared(user);
    // To act as another is not offered.
    if (authorization !== '' && authorization !== user) return { kind: 'foreign', user: name };
    return passwordStep(name, password);
  }
}

export class LoginExchange implements Exchange {
  readonly mechanism = 'LOGIN';
  #user: string | undefined;
  #isAsked = false;

  next(response: Uint8Array | undefined): Step {
    const text = response === undefined ? undefined : utf8Text(response, 0, response.length);
    if (response === undefined || (text === '' && !this.#isAsked && this.#user === undefined)) {
      this.#isAsked = true;
      return { kind: 'challenge', text: 'Username:' };
    }
    if (text === undefined || text.includes('\0')) return MALFORMED;
    if (this.#user !== undefined) return passwordStep(this.#user, text);
    if (text === '') return MALFORMED;
    this.#user = prepared(text);
    return { kind: 'challenge', text: 'Password:' };
  }
}

function passwordStep(user: string, password: string): Step {
  if (user === '' || prepared(password) === '') return { kind: 'refused', user };
  return { kind: 'password', user, password: normalized(password) };
}

/** The messages are those of RFC 5802 3: client-first, server-first, client-final, server-final. */
export class ScramExchange implements Exchange {
  readonly mechanism = 'SCRAM-SHA-256';
  readonly #users: Pick<Users, 'find' | 'usual'>;
  readonly #secrets: Secrets;
  /** Makes salts for unknown names. */
  readonly #fakeKey: Uint8Array;
  #user = '';
  #header = '';
  #clientFirst = '';
  #serverFirst = '';
  #nonce = '';
  #verifier: ScramVerifier | undefined;
  /** Whose it is; undefined: nobody's. */
  #found: User | undefined;
  #proven: Account | undefined;

  constructor(users: Pick<Users, 'find' | 'usual'>, secrets: Secrets, fakeKey: Uint8Array) {
    this.#users = users;
    this.#secrets = secrets;
    this.#fakeKey = fakeKey;
  }

  next(response: Uint8Array | undefined): Step {
    if (response === undefined) return { kind: 'challenge', text: '' };
    // SMTP has no place for data beside success: the client answers the server's last message with nothing.
    const account = this.#proven;
    if (account !== undefined) return response.length === 0 ? { kind: 'proven', account } : MALFORMED;
    const text = utf8Text(response, 0, response.length);
    if (text === undefined) return MALFORMED;
    return this.#verifier === undefined ? this.#onFirst(text) : this.#onFinal(text, this.#verifier);
  }

  #onFirst(text: string): Step {
    // Channel binding ("p=") is not offered.
    const match = /^([ny],(?:a=([^,]*))?,)((?:n=([^,]+)),r=([\x21-\x2b\x2d-\x7e]+)(?:,.*)?)$/.exec(text);
    const [, header = '', authorization, bare = '', name = '', clientNonce = ''] = match ?? [];
    const user = unescaped(name);
    if (match === null || user === undefined) return MALFORMED;
    this.#user = prepared(user);
    if (authorization !== undefined && unescaped(authorization) !== user) {
      return { kind: 'foreign', user: this.#user };
    }
    this.#header = header;
    this.#clientFirst = bare;
    this.#found = this.#users.find(this.#user);
    const verifier = this.#found?.verifier;
    this.#verifier = verifier?.kind === 'scram' ? verifier : this.#fake(this.#user);
    this.#nonce = clientNonce + base64Text(this.#secrets.randomBytes(NONCE_BYTES));
    const { salt, iterations } = this.#verifier;
    this.#serverFirst = `r=${this.#nonce},s=${base64Text(salt)},i=${iterations}`;
    return { kind: 'challenge', text: this.#serverFirst };
  }

  #onFinal(text: string, { storedKey, serverKey }: ScramVerifier): Step {
    const match = /^(c=([^,]+),r=([^,]+)(?:,[^p][^,]*)*),p=([^,]+)$/.exec(text);
    const [, withoutProof = '', binding = '', nonce = '', proofText = ''] = match ?? [];
    const proof = base64Bytes(proofText);
    if (match === null || proof?.length !== storedKey.length) return MALFORMED;
    if (binding !== base64Text(latin1Bytes(this.#header)) || nonce !== this.#nonce) return this.#refused();
    const signed = utf8Bytes(`${this.#clientFirst},${this.#serverFirst},${withoutProof}`);
    const clientSignature = this.#secrets.hmacSha256(storedKey, signed);
    const clientKey = proof.map((byte, index) => byte ^ (clientSignature[index] ?? 0));
    const isRight = this.#secrets.equal(this.#secrets.sha256(clientKey), storedKey);
    if (!isRight || this.#found === undefined) return this.#refused();
    this.#proven = this.#found;
    return { kind: 'challenge', text: `v=${base64Text(this.#secrets.hmacSha256(serverKey, signed))}` };
  }

  #refused(): Step {
    return { kind: 'refused', user: this.#user };
  }

  #fake(name: string): ScramVerifier {
    const usual = this.#users.usual;
    invariant(usual?.kind === 'scram', 'SCRAM is offered when all users have it');
    const key = this.#secrets.hmacSha256(this.#fakeKey, utf8Bytes(name));
    const more = this.#secrets.hmacSha256(key, this.#fakeKey);
    const salt = new Uint8Array([...key, ...more]).slice(0, usual.salt.length);
    const unknowable = this.#secrets.randomBytes(usual.storedKey.length);
    const { kind, iterations } = usual;
    return { kind, iterations, salt, storedKey: unknowable, serverKey: unknowable };
  }
}

/** "=2C" and "=3D" of a saslname (RFC 5802 5.1); undefined when another "=" is in it. */
function unescaped(name: string): string | undefined {
  const text = name.replaceAll('=2C', ',').replaceAll('=3D', '\0');
  return text.includes('=') ? undefined : text.replaceAll('\0', '=');
}
