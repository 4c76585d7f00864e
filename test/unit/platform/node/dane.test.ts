/** TLSA records against real certificates, made by openssl. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { X509Certificate, createHash, createPublicKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { makeCertificates } from '../../../process/tls-hop.js';
import type { DetailedPeerCertificate } from 'node:tls';
import type { CertificateFiles } from '../../../process/tls-hop.js';
import type { TlsaData } from '../../../../src/platform/resolver.js';
import { chainOf, usableRecords, whyNotByDane } from '../../../../src/platform/node/dane.js';
import { rsaKeyOf, spkiOf } from './odd-certificates.js';

const HOST = 'mx.dane.test';
const NO_MATCH = 'its certificate is not the one that its TLSA records speak of';
const OVER = 'a certificate that leads to its TLSA records has expired, or is not valid yet';
const DAY_MS = 86_400_000;

const made = makeCertificates();
const needsOpenssl = { skip: made === undefined ? 'openssl is missing' : false };

interface Chains {
  readonly leaf: X509Certificate;
  readonly ca: X509Certificate;
  /** For another name; for none of ours, by an authority of which nobody knows. */
  readonly other: X509Certificate;
  readonly stranger: X509Certificate;
  /** By an end server's key, which may sign nothing. */
  readonly belowLeaf: X509Certificate;
}

function read({ certFile }: CertificateFiles): X509Certificate {
  return new X509Certificate(readFileSync(certFile));
}

function makeChains(): Chains {
  assert.ok(made !== undefined);
  const leaf = made.issue(HOST);
  const below = `${leaf.certFile}.below`;
  const quiet = { stdio: 'ignore' } as const;
  execFileSync('openssl', ['req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-subj', `/CN=${HOST}`, '-keyout', `${below}.key`, '-out', `${below}.csr`], quiet);
  execFileSync('openssl', ['x509', '-req', '-in', `${below}.csr`, '-CA', leaf.certFile, '-CAkey', leaf.keyFile, '-CAcreateserial', '-days', '30', '-out', below], quiet);
  return {
    leaf: read(leaf), ca: new X509Certificate(readFileSync(made.caFile)), other: read(made.issue('mx.other.test')),
    stranger: read(made.selfSigned(HOST)), belowLeaf: new X509Certificate(readFileSync(below)),
  };
}

let chains: Chains | undefined;
function all(): Chains {
  chains ??= makeChains();
  return chains;
}

/** "3 1 1" of a certificate: the key by OpenSSL's own hand. */
function tlsa(numbers: string, of: X509Certificate): TlsaData {
  const [usage = 0, selector = 0, matching = 0] = numbers.split(' ').map(Number);
  const data = selector === 0 ? of.raw : of.publicKey.export({ type: 'spki', format: 'der' });
  const association = matching === 0 ? data : createHash(matching === 2 ? 'sha512' : 'sha256').update(data).digest();
  return { usage, selector, matching, association };
}

/** "unusable", or what is wrong with a chain, '' for nothing. */
function judged(records: readonly TlsaData[], chain: readonly X509Certificate[], names = [HOST], nowMs = Date.now()): string {
  const usable = usableRecords(records);
  return usable.length === 0 ? 'unusable' : whyNotByDane(chain.map(({ raw }) => raw), { records: usable, names }, nowMs);
}

describe('a certificate by TLSA records', () => {
  for (const numbers of ['3 1 1', '3 0 1', '3 1 2', '3 0 2', '3 0 0', '3 1 0']) {
    test(`of ${numbers} is right when it is the one, whatever its name and dates; else not`, needsOpenssl, () => {
      const { leaf, ca, other, stranger } = all();
      assert.equal(judged([tlsa(numbers, leaf)], [leaf]), '');
      assert.equal(judged([tlsa(numbers, stranger)], [stranger]), '', 'self-signed');
      assert.equal(judged([tlsa(numbers, leaf)], [leaf], ['mx.other.test'], Date.now() + 100 * DAY_MS), '');
      for (const wrong of [other, stranger]) assert.equal(judged([tlsa(numbers, leaf)], [wrong, ca]), NO_MATCH);
      assert.equal(judged([tlsa(numbers, ca)], [leaf, ca]), NO_MATCH, 'only the first of the chain');
    });
  }

  for (const numbers of ['2 0 1', '2 1 1', '2 0 2', '2 1 2', '2 0 0', '2 1 0']) {
    test(`of ${numbers} is right below the one that is named, in time and for the name`, needsOpenssl, () => {
      const { leaf, ca, other, stranger, belowLeaf } = all();
      const records = [tlsa(numbers, ca)];
      assert.equal(judged(records, [leaf, ca]), '');
      assert.equal(judged(records, [other, ca]), `its certificate, by its TLSA records, is not for ${HOST}`);
      assert.equal(judged(records, [other, ca], [HOST, 'mx.other.test']), '');
      assert.equal(judged(records, [leaf, ca], [HOST], Date.now() + 100 * DAY_MS), OVER);
      assert.equal(judged(records, [leaf, ca], [HOST], Date.now() - 100 * DAY_MS), OVER);
      assert.equal(judged(records, [stranger, ca]), NO_MATCH, 'who is named stands beside it, and has not signed it');
      assert.equal(judged([tlsa(numbers, leaf)], [belowLeaf, leaf, ca]), numbers === '2 1 0' ? '' : NO_MATCH, 'signed by who may not sign');
      assert.equal(judged([tlsa(numbers, leaf)], [leaf, ca]), NO_MATCH, 'none is its own authority');
      const isWhole = numbers.endsWith('0');
      assert.equal(judged(records, [leaf]), isWhole ? '' : NO_MATCH, 'who is named did not come along');
      assert.equal(judged(records, [other]), isWhole ? `its certificate, by its TLSA records, is not for ${HOST}` : NO_MATCH);
      assert.equal(judged(records, [stranger]), NO_MATCH);
    });
  }

  test('is for names that its wildcard stands for as one whole label, not for a part of one', needsOpenssl, () => {
    assert.ok(made !== undefined);
    const { ca } = all();
    assert.equal(judged([tlsa('2 0 1', ca)], [read(made.issue('*.dane.test')), ca]), '');
    assert.equal(judged([tlsa('2 0 1', ca)], [read(made.issue('m*.dane.test')), ca]), `its certificate, by its TLSA records, is not for ${HOST}`);
  });

  test('comes with nine of its chain at most', () => {
    type Shown = Pick<DetailedPeerCertificate, 'raw'> & { readonly issuerCertificate?: Shown };
    const shown = (left: number): Shown => ({ raw: Buffer.from([left]), ...(left === 0 ? {} : { issuerCertificate: shown(left - 1) }) });
    assert.deepEqual([3, 8, 9, 50].map((above) => chainOf(shown(above) as DetailedPeerCertificate).length), [4, 9, 9, 9]);
  });

  test('that has expired is right by usage 3, and not by usage 2', needsOpenssl, () => {
    assert.ok(made !== undefined);
    const { ca } = all();
    const old = read(made.issue(HOST, -1));
    assert.ok(Date.parse(old.validTo) < Date.now(), old.validTo);
    assert.equal(judged([tlsa('3 1 1', old)], [old, ca]), '');
    assert.equal(judged([tlsa('2 0 1', ca)], [old, ca]), OVER);
    assert.equal(judged([tlsa('2 0 1', ca), tlsa('3 1 1', old)], [old, ca]), '', 'one that fits is enough');
  });

  test('is not right below an authority of which the record holds all, once that is over; a bare key has no date', needsOpenssl, () => {
    assert.ok(made !== undefined);
    const { ca } = all();
    const leaf = read(made.issue(HOST, 60));
    const laterMs = Date.now() + 40 * DAY_MS;
    assert.equal(judged([tlsa('2 0 0', ca)], [leaf]), '');
    assert.equal(judged([tlsa('2 0 0', ca)], [leaf], [HOST], laterMs), NO_MATCH);
    assert.equal(judged([tlsa('2 1 0', ca)], [leaf], [HOST], laterMs), '');
  });

  test('is not right below an authority that has the key, and not the name, of who has issued it', needsOpenssl, () => {
    assert.ok(made !== undefined);
    const own = made.selfSigned('one.ca.test');
    const otherFile = `${own.certFile}.other`;
    execFileSync('openssl', ['req', '-x509', '-key', own.keyFile, '-days', '30', '-subj', '/CN=other.ca.test', '-out', otherFile], { stdio: 'ignore' });
    const leaf = read(made.issue(HOST, 30, 'authorityKeyIdentifier=none', own));
    const other = new X509Certificate(readFileSync(otherFile));
    assert.ok(other.ca && leaf.verify(other.publicKey));
    for (const numbers of ['2 0 1', '2 0 0']) assert.equal(judged([tlsa(numbers, other)], [leaf, other]), NO_MATCH, numbers);
  });

  test('is right when one record of several fits', needsOpenssl, () => {
    const { leaf, ca, other } = all();
    assert.equal(judged([tlsa('3 1 1', other), tlsa('3 1 1', leaf)], [leaf]), '');
    assert.equal(judged([tlsa('3 1 1', other), tlsa('2 1 1', ca)], [leaf, ca]), '');
    assert.equal(judged([tlsa('1 1 1', leaf), tlsa('3 1 1', other)], [leaf]), NO_MATCH);
  });

  test('is not judged by records of other usages, selectors and digests, nor by damaged ones', needsOpenssl, () => {
    const { leaf, ca } = all();
    const whole = tlsa('3 0 0', leaf);
    const key = tlsa('3 1 0', leaf);
    const digest = tlsa('3 1 1', leaf);
    const unusable: readonly TlsaData[] = [
      tlsa('0 0 1', ca), tlsa('1 1 1', leaf), { ...digest, usage: 4 }, { ...digest, usage: 255 }, { ...digest, selector: 2 },
      { ...digest, matching: 9 }, { ...digest, matching: 2 }, { ...digest, association: new Uint8Array(0) },
      { ...digest, association: digest.association.subarray(1) }, { ...whole, association: new Uint8Array(0) },
      { ...whole, association: whole.association.subarray(0, 100) }, { ...whole, association: Buffer.concat([whole.association, Buffer.from([0])]) },
      { ...whole, association: Buffer.from(leaf.toString()) }, { ...key, association: key.association.subarray(0, 40) },
      { ...key, association: whole.association },
    ];
    for (const record of unusable) assert.deepEqual(usableRecords([record]), [], JSON.stringify(record));
    assert.equal(judged([...unusable, digest], [leaf]), '', 'they do not spoil one that can be used');
  });

  test('is judged by 32 records at most', needsOpenssl, () => {
    const { leaf, other } = all();
    const others = (count: number): readonly TlsaData[] => Array<TlsaData>(count).fill(tlsa('3 1 1', other));
    assert.equal(judged([...others(31), tlsa('3 1 1', leaf)], [leaf]), '');
    assert.equal(judged([...others(32), tlsa('3 1 1', leaf)], [leaf]), NO_MATCH);
  });

  test('is judged by the strongest digest there is of each kind', needsOpenssl, () => {
    const { leaf, other } = all();
    assert.equal(judged([tlsa('3 1 1', leaf), tlsa('3 1 2', other)], [leaf]), NO_MATCH);
    assert.equal(judged([tlsa('3 0 1', leaf), tlsa('3 1 2', other)], [leaf]), '', 'of another kind');
  });

  test('of three steps needs each signature of it', needsOpenssl, () => {
    assert.ok(made !== undefined);
    const { ca } = all();
    const middle = made.issue('middle.test', 30, 'basicConstraints=critical,CA:TRUE');
    const leaf = made.issue(HOST, 30, '', middle);
    const chain = [read(leaf), read(middle), ca];
    for (const numbers of ['2 0 1', '2 1 0']) {
      assert.equal(judged([tlsa(numbers, ca)], chain), '');
      assert.equal(judged([tlsa(numbers, read(middle))], chain), '');
    }
    assert.equal(judged([tlsa('2 0 1', ca)], [read(leaf), ca]), NO_MATCH, 'the middle one did not come along');
    assert.equal(judged([tlsa('2 0 1', ca)], [read(leaf), all().leaf, ca]), NO_MATCH);
    const past = [read(leaf), ...Array<X509Certificate>(20).fill(ca)];
    assert.equal(judged([tlsa('2 0 1', ca)], past), NO_MATCH);
  });

  test('by an authority that has only the name of the one that is meant is not right', needsOpenssl, () => {
    const { ca, leaf } = all();
    const evil = makeCertificates();
    assert.ok(evil !== undefined);
    const forged = read(evil.issue(HOST, 30, 'authorityKeyIdentifier=none'));
    assert.ok(forged.checkIssued(ca), 'by its name it is');
    for (const numbers of ['2 0 1', '2 1 1', '2 0 0', '2 1 0']) {
      assert.equal(judged([tlsa(numbers, ca)], [forged, ca]), NO_MATCH, numbers);
      assert.equal(judged([tlsa(numbers, ca)], [leaf, ca]), '', numbers);
    }
  });

  test('is not judged by keys that take long, nor by more than four that stand whole', needsOpenssl, () => {
    const whole = (usage: number, ...key: readonly string[]): TlsaData => {
      const pem = execFileSync('openssl', ['genpkey', ...key], { stdio: ['ignore', 'pipe', 'ignore'] });
      const association = createPublicKey(pem).export({ type: 'spki', format: 'der' });
      return { usage, selector: 1, matching: 0, association };
    };
    const slow = ['-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048', '-pkeyopt', 'rsa_keygen_pubexp:4294967311'];
    const large = { usage: 2, selector: 1, matching: 0, association: spkiOf(rsaKeyOf(16_384)) };
    for (const usage of [2, 3]) assert.deepEqual(usableRecords([whole(usage, ...slow), { ...large, usage }]), []);
    const quick = Array.from({ length: 5 }, () => whole(2, '-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256'));
    assert.deepEqual(usableRecords(quick), quick.slice(0, 4));
  });

  test('is none where none is shown, or what is shown is no certificate', needsOpenssl, () => {
    const { leaf, ca } = all();
    const terms = { records: [tlsa('3 1 1', leaf), tlsa('2 1 0', ca)], names: [HOST] };
    assert.equal(whyNotByDane([], terms, 0), 'it shows no certificate, and has TLSA records');
    for (let length = 0; length < leaf.raw.length; length++) {
      assert.notEqual(whyNotByDane([leaf.raw.subarray(0, length)], terms, Date.now()), '', String(length));
    }
  });
});
