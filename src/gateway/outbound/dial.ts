/**
 * A connection to a host by name, until it is open: its addresses are asked for, each is checked and gets the
 * source that it is connected to from (sources.ts), and they are tried one after the other until one takes
 * the connection. From then on the session (pure/smtp-session.ts) has that connection itself.
 *
 *   RESOLVING ─ addresses, TLSA ─► TRYING ─ open ─► OPEN   onOpened(connection), then its events go to the
 *       │ none                       │                       session
 *       │                            │ refused, silent: the next address; none left
 *       ├────────────────────────────┴──► CLOSED   onClose(reason), with what each address said, or that
 *       │                                            nobody could tell one to try
 *       └ no answer on TLSA, or none and ► CLOSED   onForbidden(reason, by)
 *         the policy does not name it
 *   RESOLVING ─ the DNS had no room to ask ────► CLOSED   onNoRoom()
 *   TRYING ─ no room at its addresses ─────────► CLOSED   onNoRoom(address)
 *   TRYING ─ no source is an address of this machine, and nothing else went wrong ─► CLOSED
 *                                                    onNoSource(reason)
 *   RESOLVING ─ destroy(), as its time is over, and the system was not asked, or just now ─► CLOSED
 *                                                    onNoRoom()
 *   RESOLVING, TRYING ─ destroy(), end() ─► CLOSED
 *
 * By MX the DNS is asked, and an address that no host of the Internet has is none. A host that the route
 * names is resolved as the system does; one that it gives the address of comes here only where there are
 * sources.
 *
 * TLSA records are asked for where the way to the host is authentic, before it is connected to, and where it
 * has no address to connect to by proof: who has none of both binds nobody (pure/host-tlsa.ts). A host that
 * the policy of the domain does not name must have some (pure/sts-policy.ts).
 *
 * By MX at most ADDRESSES_MAX are tried (RFC 5321 5.1), of a host that the route names NAMED_MAX, last those
 * that have failed within the hour (connection-pool.ts): each for its part of the time that the session gives
 * them all, and not for longer than TRY_MS; the last one has what is left.
 */
import type { Connection, ConnectionHandlers, MailTransport } from '../../platform/transport.js';
import { codeOfSource } from '../../platform/transport.js';
import type { Clock, Random } from '../../platform/ports.js';
import { usableRecords } from '../../platform/node/dane.js';
import type { DnsAnswer } from '../../platform/resolver.js';
import type { ConnectionAccount } from './connection-account.js';
import type { MxLookup } from './mx-lookup.js';
import { inTurns } from './pure/address-turns.js';
import { areProved } from './pure/host-tlsa.js';
import type { HostTlsa } from './pure/host-tlsa.js';
import { judgedHost } from './pure/public-address.js';
import type { MailSource, Way } from './pure/source-choice.js';
import { UNNAMED } from './pure/sts-policy.js';
import type { Sources } from './sources.js';

const ADDRESSES_MAX = 5;
/** Not shuffled: of a large provider the first five may all be dead, again and again. */
const NAMED_MAX = 20;
/** For one address, as long as there is another one. */
const TRY_MS = 10_000;

export interface DialPorts {
  readonly transport: Pick<MailTransport, 'connect' | 'addresses'>;
  readonly lookup: MxLookup;
  readonly sources: Sources;
  readonly connections: Pick<ConnectionAccount, 'takeAddress' | 'giveAddress'>;
  readonly random: Random;
  readonly clock: Clock;
}

/** Who wants the connection. */
export interface DialHandlers extends ConnectionHandlers {
  /** What the DNS says of TLS with the host, once that is known: before the first address, if any. */
  onJudged(tlsa: HostTlsa | undefined): void;
  /** Before each address. */
  onTrying(way: Way): void;
  /** The address was not reached for: its source can't be used. */
  onSourceless(): void;
  /** Right before onOpen: what to write to from now on. */
  onOpened(connection: Connection, way: Way): void;
  /** `isUnresolved`: nobody could tell an address just now. */
  onClose(reason: string, isUnresolved?: boolean): void;
  /** Instead of onClose: nobody could tell its TLSA records, or the policy does not name it. */
  onForbidden(reason: string, isTlsaUntold: boolean): void;
  /** Instead of onClose: the fault is ours, and the host was not reached for. */
  onNoSource(reason: string): void;
  /**
   * Instead of onClose: the host was not reached for, as others have all the room there is. From inside
   * destroy() where they had the system that it is resolved by.
   */
  onNoRoom(fullAddress: string): void;
}

/** Whom it leads to. */
export interface DialTo {
  readonly name: string;
  readonly port: number;
  readonly isByMx: boolean;
  readonly isUnnamed: boolean;
}

/** What its site says of it. */
export interface DialTerms {
  readonly asksTlsa: boolean;
  /** By which its source is chosen. */
  readonly site: string;
  /** Addresses of those that are allowed; undefined: all. */
  readonly sources: readonly string[] | undefined;
  /** From now on, until it must be open. */
  readonly withinMs: number;
  /** In which order addresses of a host that the route names are tried. */
  readonly inOrder: (addresses: readonly string[]) => readonly string[];
}

/** What connect() says of a source that is gone. */
const NOT_HERE = 'EADDRNOTAVAIL';

export class Dial implements Connection {
  readonly bufferedBytes = 0;
  readonly #to: DialTo;
  readonly #terms: DialTerms;
  readonly #ports: DialPorts;
  readonly #handlers: DialHandlers;
  readonly #ways: Way[] = [];
  readonly #whys: string[] = [];
  readonly #untilMs: number;
  #tried = 0;
  /** Of those, for want of their source. */
  #sourceless = 0;
  /** Where no room was left. */
  #fullAddress = '';
  /** Counted in the account, until the attempt is over. */
  #taken = '';
  #attempt: Attempt | undefined;
  /** Until it is known where to connect to. */
  #isResolving = true;
  /** By MX: the DNS did not answer about all its addresses. */
  #isUntold = false;
  /** Nobody waits for its addresses any more; false: they were not even asked for, or just now. */
  #leaveLookup = (): boolean => true;
  #isLeft = false;
  #isClosed = false;

  constructor(to: DialTo, terms: DialTerms, ports: DialPorts, handlers: DialHandlers) {
    this.#to = to;
    this.#terms = terms;
    this.#ports = ports;
    this.#handlers = handlers;
    this.#untilMs = ports.clock.nowMs() + terms.withinMs;
    // What is known is answered at once, and handlers are not called from inside a connect().
    setImmediate(() => { this.#resolve(); });
  }

  get remote(): string { return `${this.#to.name}:${String(this.#to.port)}`; }

  get isResolving(): boolean { return this.#isResolving; }

  /** Nothing is sent, and nothing comes, before it is open. */
  write(): void { return; }
  pause(): void { return; }
  resume(): void { return; }
  end(): void { this.destroy(); }

  destroy(): void {
    if (this.#isLeft) return;
    this.#isLeft = true;
    // From inside: who ends it for want of time is about to call its host down.
    if (!this.#leaveLookup()) this.#leaveToOthers();
    this.#attempt?.leave();
    this.#giveBack();
    setImmediate(() => { this.#close('not needed any more'); });
  }

  #resolve(): void {
    if (this.#isLeft) return;
    const { lookup, transport, random } = this.#ports;
    const { name, isByMx } = this.#to;
    if (!isByMx) {
      this.#leaveLookup = transport.addresses(name, ({ addresses, why, isFailed }) => {
        if (this.#isLeft) return;
        if (addresses.length === 0) this.#close(why, isFailed);
        else this.#start(this.#terms.inOrder(addresses));
      });
      return;
    }
    lookup.addresses(name, (answers, isIpv6Only) => {
      if (this.#isLeft) return;
      const { open, whys, isUntold, isUnasked } = judgedHost(answers, isIpv6Only, lookup.allowsPrivate);
      const found = inTurns(open.map((addresses) => shuffled(addresses, random)));
      this.#whys.push(...whys);
      this.#isUntold = isUntold;
      if (isUnasked) this.#leaveToOthers();
      else if (!this.#terms.asksTlsa) this.#start(found);
      else if (found.length > 0 || (!isIpv6Only && areProved(answers))) this.#askTlsa(found, answers);
      else this.#giveUp();
    });
  }

  #askTlsa(addresses: readonly string[], answers: readonly DnsAnswer<'A' | 'AAAA'>[]): void {
    const { name, port, isUnnamed } = this.#to;
    this.#ports.lookup.tlsa(name, port, answers, (verdict) => {
      if (this.#isLeft) return;
      if (verdict !== undefined && 'failed' in verdict) {
        return verdict.isUnasked === true ? this.#leaveToOthers() : this.#forbid(verdict.failed, true);
      }
      const isBound = verdict !== undefined && usableRecords(verdict.found.records).length > 0;
      if (isUnnamed && !isBound) return this.#forbid(UNNAMED, false);
      this.#start(addresses, verdict?.found);
    });
  }

  #leaveToOthers(fullAddress = ''): void {
    this.#isClosed = true;
    this.#handlers.onNoRoom(fullAddress);
  }

  #forbid(why: string, isTlsaUntold: boolean): void {
    this.#isClosed = true;
    this.#handlers.onForbidden(why, isTlsaUntold);
  }

  #start(addresses: readonly string[], tlsa?: HostTlsa): void {
    this.#isResolving = false;
    this.#handlers.onJudged(tlsa);
    const { isByMx } = this.#to;
    const { site, sources: allowed } = this.#terms;
    const { ways, whys } = this.#ports.sources.waysTo(addresses, { site, isByMx }, allowed);
    this.#whys.push(...whys);
    this.#ways.push(...ways.slice(0, isByMx ? ADDRESSES_MAX : NAMED_MAX));
    this.#tryNext();
  }

  #tryNext(): void {
    const way = this.#ways.shift();
    if (way === undefined) return this.#giveUp();
    const { address, from } = way;
    if (this.#to.isByMx && !this.#ports.connections.takeAddress(address)) {
      this.#fullAddress = address;
      return this.#tryNext();
    }
    if (this.#to.isByMx) this.#taken = address;
    this.#handlers.onTrying(way);
    const partMs = (this.#untilMs - this.#ports.clock.nowMs()) / (this.#ways.length + 1);
    const withinMs = this.#ways.length > 0 ? Math.max(1, Math.min(TRY_MS, partMs)) : 0;
    this.#tried++;
    this.#attempt = new Attempt(this.#handlers, way, withinMs, (reason) => {
      this.#onFailed(way, reason);
    });
    this.#attempt.connection =
      this.#ports.transport.connect(address, this.#to.port, this.#attempt, from?.address);
  }

  #giveBack(): void {
    if (this.#taken !== '') this.#ports.connections.giveAddress(this.#taken);
    this.#taken = '';
  }

  #onFailed({ address, from }: Way, reason: string): void {
    this.#giveBack();
    const code = codeOfSource(reason);
    if (from !== undefined && code !== undefined) this.#onSourceless(from, code);
    else this.#whys.push(`${address}: ${reason}`);
    this.#tryNext();
  }

  #onSourceless(from: MailSource, code: string): void {
    this.#sourceless++;
    this.#handlers.onSourceless();
    if (code === NOT_HERE) this.#ports.sources.noteGone(from);
    const why = code === NOT_HERE ? 'is no address of this machine' : 'can not be used';
    const text = `source ${from.address} ${why} (${code})`;
    if (!this.#whys.includes(text)) this.#whys.push(text);
  }

  /** No address of the host is left. */
  #giveUp(): void {
    if (this.#fullAddress !== '') return this.#leaveToOthers(this.#fullAddress);
    const reason = this.#whys.join('; ');
    if (this.#tried === 0) return this.#close(reason, this.#isUntold);
    if (this.#sourceless < this.#tried) return this.#close(reason);
    this.#isClosed = true;
    this.#handlers.onNoSource(reason);
  }

  #close(reason: string, isUnresolved = false): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#handlers.onClose(reason, isUnresolved);
  }
}

/** With one address. */
class Attempt implements ConnectionHandlers {
  connection: Connection | undefined;
  readonly #handlers: DialHandlers;
  readonly #way: Way;
  readonly #onFailed: (reason: string) => void;
  readonly #timer: NodeJS.Timeout | undefined;
  #isOpen = false;
  #isLeft = false;

  /** `withinMs` 0: without a bound here. */
  constructor(
    handlers: DialHandlers, way: Way, withinMs: number, onFailed: (reason: string) => void,
  ) {
    this.#handlers = handlers;
    this.#way = way;
    this.#onFailed = onFailed;
    this.#timer = withinMs === 0 ? undefined : setTimeout(() => {
      this.leave();
      onFailed(`no answer within ${(withinMs / 1000).toFixed(1)} s`);
    }, withinMs);
  }

  leave(): void {
    this.#isLeft = true;
    clearTimeout(this.#timer);
    this.connection?.destroy();
  }

  onOpen(): void {
    if (this.#isLeft || this.connection === undefined) return;
    clearTimeout(this.#timer);
    this.#isOpen = true;
    this.#handlers.onOpened(this.connection, this.#way);
    this.#handlers.onOpen();
  }

  onData(bytes: Uint8Array): void { this.#handlers.onData(bytes); }
  onDrain(): void { this.#handlers.onDrain(); }

  onClose(reason: string): void {
    clearTimeout(this.#timer);
    if (this.#isOpen) this.#handlers.onClose(reason);
    else if (!this.#isLeft) this.#onFailed(reason);
  }
}

function shuffled(records: readonly string[], random: Random): string[] {
  const order = records.map((address) => ({ address, at: random() }));
  return order.sort((one, other) => one.at - other.at).map(({ address }) => address);
}
