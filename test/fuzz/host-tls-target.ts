/**
 * The whole way from answers of the DNS in somebody else's hands to what TLS a host gets: MX, addresses, aliases and TLSA
 * records, signed or not, bogus, absent, some as messages that are changed; under policies of domains; then a server with
 * this or that certificate, or none. The lookup, the dialling, the session and the judge of certificates are the product's;
 * the handshake is not made. What must hold, by a model of its own:
 *
 *   authentic TLSA records, one usable   ready for mail only in TLS, with a certificate that one of them fits; then always
 *   authentic TLSA records, none usable  ready for mail only in TLS; whatever the certificate, but where the route verifies
 *   no answer on TLSA of a signed name   not connected to: deferred, 4.7.5
 *   a host that the policy leaves out    connected to by usable TLSA records alone
 *   no such records                      as the route and the policy say, and nothing more
 *   any of it                            a bounded number of questions; who is not ready is deferred
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import packet from 'dns-packet';
import type { Answer } from 'dns-packet';
import type { Prng } from '../../src/base/prng.js';
import { Dial } from '../../src/gateway/outbound/dial.js';
import { MxLookup } from '../../src/gateway/outbound/mx-lookup.js';
import { Peer } from '../../src/gateway/outbound/peer.js';
import type { HostsWay, MailHost, MailWay } from '../../src/gateway/outbound/pure/mail-exchangers.js';
import { DEFAULT_TIMEOUTS, State } from '../../src/gateway/outbound/pure/session-states.js';
import { raisedBySts, underPolicy } from '../../src/gateway/outbound/pure/sts-policy.js';
import type { StsPolicy } from '../../src/gateway/outbound/pure/sts-policy.js';
import { SiteHost } from '../../src/gateway/outbound/site-hosts.js';
import { Sources } from '../../src/gateway/outbound/sources.js';
import { DEFERRED } from '../../src/gateway/mail-types.js';
import type { NextHopTls, RecipientResult } from '../../src/gateway/mail-types.js';
import { usableTerms, whyNotByDane } from '../../src/platform/node/dane.js';
import { ANSWER_BYTES_MAX, NAME_CHARACTERS_MAX, isAskable, readAnswer } from '../../src/platform/node/dns/dns-message.js';
import type { DnsAnswer, DnsData, DnsType, Resolver, TlsaData } from '../../src/platform/resolver.js';
import type { ConnectionHandlers, SecuredFacts, TlsTerms } from '../../src/platform/transport.js';
import { NO_TAP } from '../../src/smtp/session-tap.js';
import { WriteBuffer } from '../../src/smtp/write-buffer.js';
import { ScriptedConnection } from '../unit/gateway/outbound/pure/session-world.js';
import { CA, CERTIFICATES_WALL_MS, LEAF, OTHER, OVER, STRANGER } from './certificates.js';
import type { TestCertificate } from './certificates.js';
import { tally } from './field.js';
import { changed } from './inputs.js';

const DOMAIN = 'a.example';
const TARGET = 'mx.a.example';
/** 253 characters: its TLSA records would stand under a name that is too long to be one. */
const LONG = `${'l.'.repeat(122)}a.example`;
const HOSTS = ['mx.a.example', 'mx.a.example', 'mx.b.example', 'a.example', LONG] as const;
const PORT = 25;
/** MX, two of addresses where there is none; two of addresses, CNAME, two of TLSA records. */
const QUESTIONS_MAX = 8;
const BUFFER = new WriteBuffer();
const LEVELS = ['none', 'may', 'may', 'may', 'may', 'may', 'encrypt', 'encrypt', 'verify'] as const;
const CHAINS: readonly (readonly TestCertificate[])[] = [
  [LEAF, CA], [LEAF, CA], [LEAF, CA], [LEAF, CA], [LEAF], [OTHER, CA], [OVER, CA], [STRANGER], [STRANGER, CA], [CA], [LEAF, STRANGER], [LEAF, LEAF, CA], [],
];
const CERTIFICATES = [LEAF, LEAF, LEAF, CA, CA, OTHER, OVER, STRANGER] as const;
const POLICIES: readonly (StsPolicy | undefined)[] = [
  undefined, undefined, { mode: 'enforce', mx: ['mx.a.example'], maxAgeS: 1 }, { mode: 'enforce', mx: ['*.b.example'], maxAgeS: 1 }, { mode: 'testing', mx: ['x.example'], maxAgeS: 1 },
];
const SILENT = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
const ROOM = { takeAddress: () => true, giveAddress: () => undefined };
const CLOCK = { nowMs: () => 0, wallMs: () => 0 };
/** Beyond them some are passed over (platform/node/dane.ts), and the model does not say which. */
const RECORDS_MAX = 32;
const ANCHORS_MAX = 4;

const SERVERS = ['no STARTTLS', '454', 'broken', 'good', 'good', 'good', 'good', 'good', 'good'] as const;
type Server = (typeof SERVERS)[number];

/** Ready for mail in TLS or in clear; or not. */
type End = SecuredFacts | 'clear' | 'no room' | { readonly why: RecipientResult | undefined };

/** What data a certificate has by selector and matching type. */
function dataOf({ der, spki }: TestCertificate, selector: number, matching: number): Buffer {
  const data = selector === 0 ? der : spki;
  return matching === 0 ? data : createHash(matching === 1 ? 'sha256' : 'sha512').update(data).digest();
}

/** By its association, whose. */
const KNOWN = new Map<string, TestCertificate>();
for (const certificate of [CA, STRANGER, LEAF, OTHER, OVER]) {
  for (const selector of [0, 1]) for (const matching of [0, 1, 2]) KNOWN.set(keyOf(selector, matching, dataOf(certificate, selector, matching)), certificate);
}

function keyOf(selector: number, matching: number, association: Uint8Array): string {
  return `${String(selector)} ${String(matching)} ${Buffer.from(association).toString('latin1')}`;
}

function ownerOf({ selector, matching, association }: TlsaData): TestCertificate | undefined {
  return KNOWN.get(keyOf(selector, matching, association));
}

/** Answers of one zone: what was said once stays. */
class Zone implements Resolver {
  readonly asked: string[] = [];
  readonly #said = new Map<string, DnsAnswer<DnsType>>();
  readonly #random: Prng;

  constructor(random: Prng) {
    this.#random = random;
  }

  ask<T extends DnsType>(name: string, type: T, done: (answer: DnsAnswer<T>) => void): void {
    this.asked.push(`${type} ${name}`);
    done(this.said(name, type));
  }

  said<T extends DnsType>(name: string, type: T): DnsAnswer<T> {
    const key = `${type} ${name}`;
    const known = this.#said.get(key);
    if (known !== undefined) return known as DnsAnswer<T>;
    // As the client does: a name that came out of an answer may be any.
    if (!isAskable(name)) return { kind: 'failed', why: 'not a name that the DNS can hold' };
    const meant = this.#made(name, type);
    const said = this.#random.below(10) === 0 ? this.#throughBytes(name, type, meant) : meant;
    this.#said.set(key, said);
    return said as DnsAnswer<T>;
  }

  #made(name: string, type: DnsType): DnsAnswer<DnsType> {
    const random = this.#random;
    const what = random.below(type === 'TLSA' ? 20 : 60);
    const isAuthentic = random.below(type === 'TLSA' ? 6 : 12) !== 0;
    if (what === 0) return { kind: 'no-name', isAuthentic };
    if (what === 1) return { kind: 'failed', why: 'SERVFAIL' };
    if (what === 2 && random.below(4) === 0) return { kind: 'failed', why: 'no room', isUnasked: true };
    if (what < 5) return { kind: 'no-records', isAuthentic };
    const alias = type !== 'MX' && type !== 'CNAME' && random.below(5) === 0 ? { aliasOf: random.pick([TARGET, 'real.c.example']) } : {};
    return { kind: 'found', records: this.#records(type), isAuthentic, ...(alias.aliasOf === name ? {} : alias) };
  }

  #records(type: DnsType): DnsData[DnsType][] {
    const random = this.#random;
    const few = 1 + random.below(3);
    switch (type) {
      case 'MX': return Array.from({ length: few }, () => ({ preference: random.below(3), exchange: random.pick(HOSTS) }));
      case 'A': return Array.from({ length: few }, () => random.pick(['192.0.2.1', '192.0.2.2', '127.0.0.1']));
      case 'AAAA': return ['2001:db8::1'];
      case 'CNAME': return [random.pick([TARGET, 'real.c.example'])];
      case 'TLSA': return Array.from({ length: random.below(50) === 0 ? 10 + random.below(80) : few }, () => tlsaRecord(random));
      default: return ['x'];
    }
  }

  /** As the client would read it; every other one is changed on its way. */
  #throughBytes(name: string, type: DnsType, meant: DnsAnswer<DnsType>): DnsAnswer<DnsType> {
    if (meant.kind === 'failed') return meant;
    const written = packet.encode(messageOf(name, type, meant));
    const input = this.#random.below(2) === 0 ? written : changed(written, this.#random);
    const read = readAnswer(input, { id: 7, name, type }, true);
    if (input === written && written.length <= ANSWER_BYTES_MAX) assert.deepEqual(read.kind === 'answer' ? read.answer : read, meant, 'read as it was written');
    tally('messages read');
    return read.kind === 'answer' ? read.answer : { kind: 'failed', why: read.kind };
  }
}

/** Most are such as a zone has; the rest is odd in one number, or in its data. */
function tlsaRecord(random: Prng): TlsaData {
  const [usage, selector, matching] = [random.below(5) === 0 ? 2 : 3, random.below(2), random.below(16) === 0 ? 0 : random.pick([1, 1, 2])];
  const association = Uint8Array.from(dataOf(random.pick(CERTIFICATES), selector, matching));
  switch (random.below(12)) {
    case 0: return { usage: random.below(256), selector, matching, association };
    case 1: return { usage, selector: random.below(256), matching, association };
    case 2: return { usage, selector, matching: random.below(256), association };
    case 3: return { usage: random.below(2), selector, matching, association };
    case 4: return { usage, selector, matching, association: Uint8Array.from(changed(Buffer.from(association), random)) };
    case 5: return { usage, selector, matching, association: new Uint8Array(random.pick([0, 31, 32, 64, 65])) };
    default: return { usage, selector, matching, association };
  }
}

function messageOf(name: string, type: DnsType, meant: Exclude<DnsAnswer<DnsType>, { kind: 'failed' }>): packet.Packet {
  const flags = packet.RECURSION_AVAILABLE | (meant.isAuthentic ? packet.AUTHENTIC_DATA : 0) | (meant.kind === 'no-name' ? 3 : 0);
  const answers: Answer[] = [];
  if (meant.kind === 'found') {
    const owner = meant.aliasOf ?? name;
    if (owner !== name) answers.push({ type: 'CNAME', name, data: owner });
    for (const record of meant.records) {
      const { usage, selector, matching: matchingType, association } = record as TlsaData;
      const data = type === 'TLSA' ? { usage, selector, matchingType, certificate: Buffer.from(association) } : record;
      answers.push({ type, name: owner, data } as Answer);
    }
  }
  return { id: 7, type: 'response', flags, questions: [{ type, name }], answers };
}

/** What the model says of a host before anybody connects. */
type Bound = { readonly base: string; readonly records: readonly TlsaData[] } | 'failed' | 'free';

function boundOf(zone: Zone, host: string, addresses: readonly DnsAnswer<'A' | 'AAAA'>[]): Bound {
  const found = addresses.filter((answer) => answer.kind === 'found');
  const alias = found.find(({ aliasOf }) => aliasOf !== undefined)?.aliasOf;
  let bases = alias === undefined ? [host] : [alias, host];
  if (!found.every(({ isAuthentic }) => isAuthentic)) {
    if (!found.some(({ isAuthentic, aliasOf }) => !isAuthentic && aliasOf !== undefined)) return 'free';
    const own = zone.said(host, 'CNAME');
    if (own.kind === 'failed') return 'failed';
    bases = own.kind === 'found' && own.isAuthentic ? [host] : [];
  }
  for (const base of bases) {
    const name = `_${String(PORT)}._tcp.${base}`;
    if (name.length > NAME_CHARACTERS_MAX) continue;
    const answer = zone.said(name, 'TLSA');
    if (answer.kind === 'failed') return 'failed';
    if (answer.kind === 'found' && answer.isAuthentic) return { base, records: answer.records };
  }
  return 'free';
}

/** True, false, or undefined where the model can't tell: whole data that no certificate of ours has. */
function isUsable({ usage, selector, matching, association }: TlsaData): boolean | undefined {
  if ((usage !== 2 && usage !== 3) || (selector !== 0 && selector !== 1) || matching > 2) return false;
  if (matching !== 0) return association.length === (matching === 1 ? 32 : 64);
  return KNOWN.has(keyOf(selector, 0, association)) ? true : undefined;
}

/** Whether a chain is right by usable records, of which the model knows all. */
function fits(chain: readonly TestCertificate[], records: readonly TlsaData[], names: readonly string[], nowMs: number): boolean {
  const [leaf] = chain;
  const isInTime = nowMs >= CERTIFICATES_WALL_MS && leaf?.isOver === false;
  const strongest = records.filter((record) => record.matching !== 1
    || !records.some(({ usage, selector, matching }) => usage === record.usage && selector === record.selector && matching === 2));
  return strongest.some((record) => {
    const owner = ownerOf(record);
    if (leaf === undefined || owner === undefined) return false;
    if (record.usage === 3) return owner === leaf;
    if (!isInTime || !names.includes(leaf.host)) return false;
    for (let at = 0, below = leaf; ; at++, below = chain[at] ?? below) {
      if (record.matching === 0 && below.signer === owner.name) return true;
      const above = chain[at + 1];
      if (above === undefined || above.name !== below.signer) return false;
      if (above === owner) return true;
    }
  });
}

export async function hostTlsInput(random: Prng): Promise<void> {
  const zone = new Zone(random);
  const usesIpv6 = random.below(2) === 0;
  const lookup = new MxLookup({ ownNames: ['gw.test'], allowsPrivate: true, usesIpv6, usesMtaSts: true, connectionsMax: 1, connectionsPerAddressMax: 1 }, zone);
  const level = random.pick(LEVELS);
  // Where the route says that there is no TLS, nobody asks for the policy.
  const policy = level === 'none' ? undefined : random.pick(POLICIES);
  const found = wayOf(lookup, policy);
  if (!('hosts' in found)) {
    assert.match(found.why.enhanced, /^[45]\.\d+\.\d+$/);
    return tally('no way');
  }
  const mx = zone.said(DOMAIN, 'MX');
  assert.equal(found.isAuthentic, mx.kind !== 'failed' && mx.isAuthentic, 'the way is as authentic as its MX records');
  await new Play(random, zone, lookup, found, level).run(usesIpv6);
}

function wayOf(lookup: MxLookup, policy: StsPolicy | undefined): MailWay {
  let way: MailWay | undefined;
  lookup.ask(DOMAIN, (found) => { way = 'hosts' in found ? underPolicy(found, policy, DOMAIN) : found; });
  assert.ok(way !== undefined, 'it is told at once what is known');
  return way;
}

class Play {
  readonly #zone: Zone;
  readonly #lookup: MxLookup;
  readonly #host: MailHost;
  /** As the route and the policy say. */
  readonly #tls: NextHopTls | undefined;
  readonly #isLost: boolean;
  readonly #asksTlsa: boolean;
  readonly #ownDomain: string;
  readonly #server: Server;
  readonly #chain: readonly TestCertificate[];
  readonly #nowMs: number;
  readonly #isTrusted: boolean;
  #heard: ConnectionHandlers | undefined;
  /** Undefined: none began; '': it went well. */
  #handshake: string | undefined;
  #end: End | undefined;

  constructor(random: Prng, zone: Zone, lookup: MxLookup, way: HostsWay, level: (typeof LEVELS)[number]) {
    this.#zone = zone;
    this.#lookup = lookup;
    this.#host = random.pick(way.hosts);
    const terms = { serverName: this.#host.name, mustVerify: level === 'verify', caFile: undefined };
    const own = level === 'none' ? undefined : { level, isFirst: false, terms };
    this.#tls = own !== undefined && way.sts === 'enforce' ? raisedBySts(own, this.#host.name) : own;
    this.#isLost = this.#tls?.level === 'may' && random.below(4) === 0;
    this.#asksTlsa = way.isAuthentic && own !== undefined;
    this.#ownDomain = way.hosts.some(({ name }) => name.endsWith(`.${DOMAIN}`)) ? DOMAIN : '';
    this.#server = random.pick(SERVERS);
    this.#chain = random.pick(CHAINS);
    this.#nowMs = random.below(8) === 0 ? 0 : CERTIFICATES_WALL_MS;
    this.#isTrusted = random.below(2) === 0;
  }

  /** As connection-pool.ts begins a connection, and a server that goes on with it. */
  async run(usesIpv6: boolean): Promise<void> {
    const { name, preference, isUnnamed } = this.#host;
    const host = new SiteHost(name, PORT, preference, true, isUnnamed);
    const peer = this.#peer(host);
    const transport = {
      connect: (_address: string, _port: number, handlers: ConnectionHandlers) => {
        this.#heard = handlers;
        return new ScriptedConnection();
      },
      addresses: () => assert.fail('the system is not asked'),
    };
    const sources = new Sources([], { resolver: this.#zone, log: SILENT });
    const terms = { asksTlsa: this.#asksTlsa, site: name, sources: undefined, withinMs: 0, inOrder: () => assert.fail('the system orders nothing') };
    const ports = { transport, lookup: this.#lookup, sources, connections: ROOM, random: () => 0.5, clock: CLOCK };
    peer.session.attach(new Dial(host, terms, ports, peer.dialled(this.#tls, this.#asksTlsa ? this.#ownDomain : '')));
    await new Promise((resolve) => { setImmediate(resolve); });
    this.#serve(peer);
    if (peer.isRoomless) this.#end = 'no room';
    const end = this.#end;
    assert.ok(end !== undefined, `it stands still in state ${String(peer.session.state)}`);
    peer.session.abandon('the end');
    assert.ok(this.#zone.asked.length <= QUESTIONS_MAX, this.#zone.asked.join());
    this.#judge(end, this.#addresses(usesIpv6));
  }

  #peer(host: SiteHost): Peer {
    const options = {
      protocol: 'smtp', heloName: 'gw.test', relay: host.name, timeouts: DEFAULT_TIMEOUTS, contentBytesPerSecondMin: 500, auth: undefined,
      tls: this.#isLost ? undefined : this.#tls, lostTls: this.#isLost ? 'ECONNRESET' : undefined,
    } as const;
    const never = (): never => assert.fail('no mail is sent here');
    const quiet = (): void => undefined;
    return new Peer(options, {
      buffer: BUFFER, copyContent: never, mayDot: never, tap: NO_TAP, password: never, secure: (_clear, terms) => this.#secure(terms),
    }, CLOCK, {
      onPeerIdle: ({ session }) => { this.#end ??= session.tls ?? 'clear'; },
      onPeerClosed: (_peer, why) => { this.#end ??= { why }; },
      expectsMore: () => false, expectsNoMore: quiet, takeBehind: never, onPeerStale: never, onFollowersNotBorne: never, onPeerSlow: never,
      onSourceOpen: never, onAddressFailed: quiet, onTlsWanted: quiet,
    }, host, 0);
  }

  #serve({ session }: Peer): void {
    const heard = this.#heard;
    if (heard === undefined) return;
    const say = (text: string): void => { heard.onData(Buffer.from(text)); };
    heard.onOpen();
    say('220 mx ESMTP\r\n');
    say(this.#server === 'no STARTTLS' ? '250 mx\r\n' : '250-mx\r\n250 STARTTLS\r\n');
    if (session.state !== State.STARTTLS) return;
    say(this.#server === '454' ? '454 4.7.0 not now\r\n' : '220 2.0.0 go\r\n');
    const handshake = this.#handshake;
    if (handshake === undefined) return;
    if (handshake !== '') return session.onClose(handshake);
    session.onOpen();
    session.onData(Buffer.from('250 mx\r\n'));
  }

  /** As client-transport.ts does, but for the handshake. */
  #secure(terms: TlsTerms): ScriptedConnection {
    const connection = new ScriptedConnection();
    const dane = usableTerms(terms.dane);
    const by = dane !== undefined ? 'dane' : terms.isBySts === true ? 'sts' : undefined;
    const why = dane !== undefined ? whyNotByDane(this.#chain.map(({ der }) => der), dane, this.#nowMs)
      : terms.mustVerify && !this.#isTrusted ? 'self-signed certificate' : '';
    this.#handshake = this.#server === 'broken' ? 'ECONNRESET' : why === '' ? '' : `TLS: ${why}`;
    connection.security = { version: 'TLSv1.3', cipher: 'X', isVerified: dane !== undefined || this.#isTrusted, by };
    return connection;
  }

  #addresses(usesIpv6: boolean): readonly DnsAnswer<'A' | 'AAAA'>[] {
    const { name } = this.#host;
    const four = this.#zone.said(name, 'A');
    if (!usesIpv6 && four.kind !== 'no-records') return [four];
    const six = this.#zone.said(name, 'AAAA');
    return usesIpv6 || six.kind !== 'found' ? [six, four] : [four];
  }

  #judge(end: End, addresses: readonly DnsAnswer<'A' | 'AAAA'>[]): void {
    const bound = this.#asksTlsa ? boundOf(this.#zone, this.#host.name, addresses) : 'free';
    const records = typeof bound === 'object' ? bound.records : [];
    const isOff = records.every((record) => isUsable(record) === false);
    const mustNot = bound === 'failed' || (this.#host.isUnnamed === true && isOff);
    if (this.#heard === undefined) {
      const isReached = this.#zone.said(this.#host.name, 'A').kind === 'found';
      if (isReached && !mustNot) assert.ok(records.every((record) => isUsable(record) !== true), 'nobody connects to it');
      if (end === 'no room') return tally('no room');
      const why = whyOf(end);
      if (isReached) assert.equal(why.enhanced, '4.7.5', why.text);
      return tally(isReached ? 'not connected to for its TLS' : 'without an address');
    }
    assert.ok(!mustNot, 'connected to, and it must not be');
    if (!isReady(end)) whyOf(end);
    if (typeof bound === 'object') this.#judgeBound(end, bound);
    else this.#judgeFree(end);
  }

  #judgeBound(end: End, { base, records }: Exclude<Bound, string>): void {
    assert.notEqual(end, 'clear', 'in clear, and it has TLSA records');
    const isGood = this.#server === 'good';
    const usable = records.filter((record) => isUsable(record) === true);
    if (records.some((record) => isUsable(record) === undefined)) return tally('records that are odd');
    if (usable.length === 0) {
      assert.equal(isReady(end), isGood && (this.#tls?.terms.mustVerify !== true || this.#isTrusted), 'TLS, and no more');
      if (isReady(end)) assert.notEqual(byOf(end), 'dane');
      return tally('unusable records');
    }
    const names = this.#ownDomain === '' ? [base] : [base, this.#ownDomain];
    const fitting = (given: readonly TlsaData[]): boolean => fits(this.#chain, given, names, this.#nowMs);
    if (isReady(end)) {
      assert.equal(byOf(end), 'dane', 'a certificate that no record has judged');
      assert.ok(isGood && usable.some((record) => fitting([record])), 'a certificate that no record fits');
      tally('by their records');
    } else tally('against their records');
    const anchors = usable.filter(({ usage, matching }) => usage === 2 && matching === 0);
    if (usable.length > RECORDS_MAX || anchors.length > ANCHORS_MAX) return tally('many records');
    assert.equal(isReady(end), isGood && fitting(usable), 'as the records say');
  }

  #judgeFree(end: End): void {
    const level = this.#isLost ? undefined : this.#tls?.level;
    const isInClear = level === undefined || (level === 'may' && this.#server === 'no STARTTLS');
    if (isInClear) assert.equal(end, 'clear');
    else {
      assert.notEqual(end, 'clear', 'in clear, and TLS is to be had');
      assert.equal(isReady(end), this.#server === 'good' && (level !== 'verify' || this.#isTrusted));
      assert.notEqual(byOf(end), 'dane');
    }
    tally(end === 'clear' ? 'in clear' : 'as the route says');
  }
}

function isReady(end: End): boolean {
  return end === 'clear' || (typeof end === 'object' && 'version' in end);
}

function byOf(end: End): string | undefined {
  return typeof end === 'object' && 'version' in end ? end.by : undefined;
}

/** Of one that is not ready: it is tried again. */
function whyOf(end: End): RecipientResult {
  assert.ok(typeof end === 'object' && 'why' in end && end.why !== undefined, 'no mail, and no reason');
  assert.equal(end.why.status, DEFERRED, end.why.text);
  return end.why;
}
