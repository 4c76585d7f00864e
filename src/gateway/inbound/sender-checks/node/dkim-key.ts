/**
 * The public key of a signature out of its record in the DNS (RFC 6376 3.6.1, RFC 8463 4), and whether its
 * owner lets it be used for this one.
 */
import { createPublicKey } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { boundedKindOf, isBoundedRsa } from '../../../../platform/node/bounded-key.js';
import { readTags, withoutBlanks } from '../../../dkim/tag-list.js';
import type { DkimSignature, Ruling } from '../dkim-signature.js';

/** RFC 8301 3.2. */
const KEY_BITS_MIN = 1024;
/** Nearly three times what one of 8,192 bits has, the longest that is used (bounded-key.ts). */
const RECORD_CHARACTERS_MAX = 4096;
const ED25519_OCTETS = 32;
/** In front of the octets of such a key, as SubjectPublicKeyInfo (RFC 8410 4). */
const ED25519_INFO = Buffer.from('302a300506032b6570032100', 'hex');
const UNUSABLE: Ruling = ['permerror', 'unusable key'];

export function keyFor(
  record: string, { algorithm, isOfSubdomain }: Pick<DkimSignature, 'algorithm' | 'isOfSubdomain'>,
): KeyObject | Ruling {
  const tags = record.length > RECORD_CHARACTERS_MAX ? undefined : readTags(record);
  if (tags === undefined) return UNUSABLE;
  const list = (name: string): readonly string[] | undefined =>
    (tags.has(name) ? withoutBlanks(tags.get(name)).toLowerCase().split(':') : undefined);
  if ((tags.get('v') ?? 'DKIM1') !== 'DKIM1') return ['permerror', 'unknown version of key'];
  const services = list('s') ?? ['*'];
  if (!services.includes('*') && !services.includes('email')) return ['permerror', 'key is not for mail'];
  if (list('h')?.includes('sha256') === false) return ['permerror', 'key is not for sha256'];
  if (isOfSubdomain && list('t')?.includes('s') === true) return ['permerror', 'i= is not d='];
  if ((tags.get('k') ?? 'rsa').toLowerCase() !== algorithm) return ['permerror', 'key of another kind'];
  const text = withoutBlanks(tags.get('p'));
  if (text === '') return ['permerror', 'key is revoked'];
  const octets = Buffer.from(text, 'base64');
  return algorithm === 'rsa' ? rsaKey(octets) : ed25519Key(octets);
}

function rsaKey(octets: Buffer): KeyObject | Ruling {
  // What a record should hold is the first; some hold the second.
  const type = boundedKindOf(octets) === 'rsa' ? 'spki' : isBoundedRsa(octets) ? 'pkcs1' : undefined;
  const key = type === undefined ? undefined : derKey(octets, type);
  if (key?.asymmetricKeyType !== 'rsa') return UNUSABLE;
  const { modulusLength: bits = 0 } = key.asymmetricKeyDetails ?? {};
  return bits < KEY_BITS_MIN ? ['permerror', 'key is too short'] : key;
}

function ed25519Key(octets: Buffer): KeyObject | Ruling {
  if (octets.length !== ED25519_OCTETS) return UNUSABLE;
  return derKey(Buffer.concat([ED25519_INFO, octets]), 'spki') ?? UNUSABLE;
}

function derKey(key: Buffer, type: 'spki' | 'pkcs1'): KeyObject | undefined {
  try {
    return createPublicKey({ key, format: 'der', type });
  } catch {
    return undefined;
  }
}
