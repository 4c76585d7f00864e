/**
 * A connection to a host of the DNS, until it is open: its addresses are asked for, each is checked, and they
 * are tried one after the other until one takes the connection. From then on the session
 * (pure/smtp-session.ts) has that connection itself.
 *
 *   RESOLVING ─ addresses, TLSA ─► TRYING ─ open ─► OPEN   onOpened(connection), then its events go to the
 *       │ none                       │                       session
 *       │                            │ refused, silent for TRY_MS: the next address; none left
 *       ├────────────────────────────┴──► CLOSED   onClose(reason), with what each address said
 *       └ no answer on TLSA, or none and ► CLOSED   onForbidden(reason)
 *         the policy does not name it
 *   RESOLVING, TRYING ─ destroy(), end() ─► CLOSED
 *
 * TLSA records are asked for where the way to the host is authentic, before it is connected to
 * (pure/host-tlsa.ts). A host that the policy of the domain does not name must have some
 * (pure/sts-policy.ts).
 *
 * At most ADDRESSES_MAX are tried (RFC 5321 5.1). The last one has as long as the session gives it.
 */
import type { Connection, ConnectionHandlers, Transport } from '../../platform/transport.js';
import type { Random } from '../../platform/ports.js';
import { usableRecords } from '../../platform/node/dane.js';
import type { DnsAnswer } from '../../platform/resolver.js';
import type { MxLookup } from './mx-lookup.js';
import type { HostTlsa } from './pure/host-tlsa.js';
import { whyNotPublic } from './pure/public-address.js';

const ADDRESSES_MAX = 5;
/** For one address, as long as there is another one. */
const TRY_MS = 10_000;

export interface DialPorts {
  readonly transport: Transport;
  readonly lookup: MxLookup;
  readonly random: Random;
}

/** Who wants the connection. */
export interface DialHandlers extends ConnectionHandlers {
  /** Right before onOpen: what to write to from now on, and what the DNS says of TLS with it. */
  onOpened(connection: Connection, address: string, tlsa: HostTlsa | undefined): void;
  /** Instead of onClose: whether it must have TLS is not known, or no TLS of it would do. */
  onForbidden(reason: string): void;
}

/** Whom it leads to. */
export interface DialTo {
  readonly name: string;
  readonly port: number;
  readonly isUnnamed: boolean;
}

const UNNAMED = 'the MTA-STS policy of the domain does not name it, and it has no usable TLSA records';

export class Dial implements Connection {
  readonly bufferedBytes = 0;
  readonly #host: string;
  readonly #port: number;
  readonly #isUnnamed: boolean;
  readonly #ports: DialPorts;
  readonly #asksTlsa: boolean;
  readonly #handlers: DialHandlers;
  readonly #addresses: string[] = [];
  readonly #whys: string[] = [];
  #attempt: Attempt | undefined;
  #tlsa: HostTlsa | undefined;
  #isLeft = false;
  #isClosed = false;

  constructor(
    { name, port, isUnnamed }: DialTo, asksTlsa: boolean, ports: DialPorts, handlers: DialHandlers,
  ) {
    this.#host = name;
    this.#port = port;
    this.#isUnnamed = isUnnamed;
    this.#asksTlsa = asksTlsa;
    this.#ports = ports;
    this.#handlers = handlers;
    // What is known is answered at once, and handlers are not called from inside a connect().
    setImmediate(() => { this.#resolve(); });
  }

  get remote(): string { return `${this.#host}:${String(this.#port)}`; }

  /** Nothing is sent, and nothing comes, before it is open. */
  write(): void { return; }
  pause(): void { return; }
  resume(): void { return; }
  end(): void { this.destroy(); }

  destroy(): void {
    if (this.#isLeft) return;
    this.#isLeft = true;
    this.#attempt?.leave();
    setImmediate(() => { this.#close('not needed any more'); });
  }

  #resolve(): void {
    if (this.#isLeft) return;
    const { lookup, random } = this.#ports;
    lookup.addresses(this.#host, (answers) => {
      if (this.#isLeft) return;
      const found = inTurns(answers.map((answer) =>
        (answer.kind === 'found' ? shuffled(answer.records, random) : [])));
      if (found.length === 0) this.#close(whyNone(answers));
      else if (this.#asksTlsa) this.#askTlsa(found, answers);
      else this.#start(found);
    });
  }

  #askTlsa(addresses: readonly string[], answers: readonly DnsAnswer<'A' | 'AAAA'>[]): void {
    this.#ports.lookup.tlsa(this.#host, this.#port, answers, (verdict) => {
      if (this.#isLeft) return;
      if (verdict !== undefined && 'failed' in verdict) return this.#forbid(verdict.failed);
      const isBound = verdict !== undefined && usableRecords(verdict.found.records).length > 0;
      if (this.#isUnnamed && !isBound) return this.#forbid(UNNAMED);
      this.#tlsa = verdict?.found;
      this.#start(addresses);
    });
  }

  #forbid(why: string): void {
    this.#isClosed = true;
    this.#handlers.onForbidden(why);
  }

  #start(addresses: readonly string[]): void {
    for (const address of addresses) {
      const why = this.#ports.lookup.allowsPrivate ? '' : whyNotPublic(address);
      if (why === '') this.#addresses.push(address);
      else this.#whys.push(`${address} is ${why}, which is not connected to`);
    }
    this.#addresses.splice(ADDRESSES_MAX);
    this.#tryNext();
  }

  #tryNext(): void {
    const address = this.#addresses.shift();
    if (address === undefined) return this.#close(this.#whys.join('; '));
    const withinMs = this.#addresses.length > 0 ? TRY_MS : 0;
    this.#attempt = new Attempt(this.#handlers, address, this.#tlsa, withinMs, (reason) => {
      this.#whys.push(`${address}: ${reason}`);
      this.#tryNext();
    });
    this.#attempt.connection = this.#ports.transport.connect(address, this.#port, this.#attempt);
  }

  #close(reason: string): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#handlers.onClose(reason);
  }
}

/** With one address. */
class Attempt implements ConnectionHandlers {
  connection: Connection | undefined;
  readonly #handlers: DialHandlers;
  readonly #address: string;
  readonly #tlsa: HostTlsa | undefined;
  readonly #onFailed: (reason: string) => void;
  readonly #timer: NodeJS.Timeout | undefined;
  #isOpen = false;
  #isLeft = false;

  /** `withinMs` 0: without a bound here. */
  constructor(
    handlers: DialHandlers, address: string, tlsa: HostTlsa | undefined, withinMs: number,
    onFailed: (reason: string) => void,
  ) {
    this.#handlers = handlers;
    this.#address = address;
    this.#tlsa = tlsa;
    this.#onFailed = onFailed;
    this.#timer = withinMs === 0 ? undefined : setTimeout(() => {
      this.leave();
      onFailed(`no answer within ${String(withinMs / 1000)} s`);
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
    this.#handlers.onOpened(this.connection, this.#address, this.#tlsa);
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

/** One of each family after the other: where one leads nowhere, the other is tried soon. */
function inTurns(lists: readonly (readonly string[])[]): string[] {
  const longest = Math.max(0, ...lists.map(({ length }) => length));
  return Array.from({ length: longest }, (_none, at) => lists.flatMap((list) => list[at] ?? [])).flat();
}

function shuffled(records: readonly string[], random: Random): string[] {
  const order = records.map((address) => ({ address, at: random() }));
  return order.sort((one, other) => one.at - other.at).map(({ address }) => address);
}

function whyNone(answers: readonly DnsAnswer<'A' | 'AAAA'>[]): string {
  const failed = answers.find((answer) => answer.kind === 'failed');
  if (failed !== undefined) return `no answer on its address: ${failed.why}`;
  return answers.every(({ kind }) => kind === 'no-name') ? 'no such host' : 'the host has no address';
}
