/**
 * How TLS agrees on keys, with whomever: by curves, never by primes. The other side chooses those before
 * anybody knows who it is, and OpenSSL reckons with them in one go, where no turn ends (read-turns.ts). A
 * group of 8,192 bits (RFC 7919, in TLS 1.3) takes a fifth of a second of CPU at either side, and a prime of
 * 10,000 bits that a server of TLS 1.2 made up (RFC 5246 7.4.3) over one.
 */
import tls from 'node:tls';

export const CURVES = 'X25519:P-256:P-384:P-521:X448';
/** Node's, without those that need a prime. */
export const CIPHERS = `${tls.DEFAULT_CIPHERS}:!kDHE`;
