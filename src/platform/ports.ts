/**
 * The outside world as pure code sees it: every clock, checksum, codec, random source and log that a
 * machine may use comes in through one of these interfaces. The real ones live in platform/node; the
 * simulator passes its own. Nothing here does anything.
 */

/** Time. Monotonic for every decision; wall only for what people and headers show. */
export interface Clock {
  /** Milliseconds on the monotonic clock, fractional. */
  nowMs(): number;
  /** Milliseconds since the Unix epoch. */
  wallMs(): number;
}

/** CRC-32 (IEEE 802.3, as zlib): crc32(b, crc32(a, 0)) is the checksum of a followed by b. */
export type Crc32 = (bytes: Uint8Array, seed: number) => number;

/**
 * MessagePack without records and extensions. unpack throws only on input that bounds.ts let through in
 * error.
 */
export interface Packer {
  pack(value: unknown): Uint8Array;
  unpack(bytes: Uint8Array): unknown;
}

/** Secrets and identity: HMAC for the handshake and for SASL, unpredictable bytes for nonces. */
export interface Secrets {
  hmacSha256(key: Uint8Array, data: Uint8Array): Uint8Array;
  sha256(data: Uint8Array): Uint8Array;
  randomBytes(count: number): Uint8Array;
  /** Compares in constant time; false when the lengths differ. */
  equal(a: Uint8Array, b: Uint8Array): boolean;
}

/** What a file with a password holds now, or why it can't be used. */
export type PasswordFound =
  | { readonly isFound: true; readonly password: string }
  | { readonly isFound: false; readonly why: string };

/** Passwords of our own, which stand in files. */
export interface Passwords {
  read(file: string): PasswordFound;
}

/**
 * A domain in A-labels, lower case (RFC 5891); '' when it has none.
 */
export type ToAscii = (domain: string) => string;

/** bytes[from .. to) as text, one character a byte. */
export type Latin1Text = (bytes: Uint8Array, from: number, to: number) => string;

/** A seeded or real source of numbers in [0, 1). */
export type Random = () => number;

/** Fields of an event: short values only; hostile text is escaped by the writer. */
export type LogFields =
  Readonly<Record<string, string | number | boolean | null | undefined | readonly (string | number)[]>>;

/** The event log. `event` is a greppable word from docs/LOG.md ("mirror", "link", "recovery"). */
export interface EventLog {
  debug(event: string, text: string, fields?: LogFields): void;
  info(event: string, text: string, fields?: LogFields): void;
  warn(event: string, text: string, fields?: LogFields): void;
  error(event: string, text: string, fields?: LogFields): void;
}

/** What becomes of the lines of the log: status and metrics tell it. */
export interface LogLosses {
  /** Lines lost since the start: there was no room for them, or nobody reads. */
  readonly lost: number;
  /** When the last one was, Unix time. */
  readonly lostWallMs: number | undefined;
  /** Why nothing can be written now; '' while lines are, or none waits. */
  readonly failing: string;
}
