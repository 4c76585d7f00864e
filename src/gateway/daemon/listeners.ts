/**
 * The listeners of a gateway, and what their sessions ask: users, recipients, rates, hooks, checks of
 * senders. Opens the ports while mail can be committed, and takes another configuration while they are open.
 *
 *   prepare ─ what is new is made and opened,
 *        │    and answers 421 ────────────────┬─ use ──▶ new sessions go by it; a port in both stays open
 *        └─ can't be had: nothing has changed  └─ drop ─▶ what was made is closed
 *
 *   a listener that is gone  ─▶ its port closes, its sessions stay until they end
 *   what nobody asks any more (users, hooks, … of an earlier configuration) ─▶ closed within a second
 *
 * What one configuration has as the one before is the same object: rates go on counting, threads go on.
 */
import { errorText } from '../../base/error-text.js';
import { listenError } from '../../platform/node/free-port.js';
import { DnsClient } from '../../platform/node/dns/dns-client.js';
import type { DnsWatch } from '../../platform/node/dns/dns-client.js';
import type { Clock } from '../../platform/ports.js';
import type { ClientsReport, GatewayOptions, GatewayPorts } from './gateway-options.js';
import { CHECK_QUESTIONS_AT_ONCE_MAX, CheckLine } from '../inbound/sender-checks/node/check-line.js';
import type { HookChain } from '../inbound/hooks/hook-chain.js';
import { makeHooks } from '../inbound/hooks/node/make-hooks.js';
import { DEEDS, PARTIES, RateLimits } from '../inbound/limits/rate-limits.js';
import { startInbound } from '../inbound/listener.js';
import type { ListenerOptions, ListenerPorts, Renewal, RunningInbound } from '../inbound/listener.js';
import { NetworkList } from '../inbound/policy/network-list.js';
import { RecipientsByHttp } from '../inbound/recipients-by-http.js';
import { followTable } from '../inbound/recipients-file.js';
import type { RunningTable } from '../inbound/recipients-file.js';
import { askUsers, followUsers } from '../inbound/users-file.js';
import type { RunningUsers } from '../inbound/users-file.js';
import { NotFollowed } from './not-followed.js';
import type { Reception } from '../mail-types.js';

const PORT_RETRY_MS = 1000;
/** How often workers tell one another what clients did, and have open. */
const WORKERS_TOLD_MS = 1000;
/** How often it is looked whether somebody still goes by an earlier configuration. */
const LOOK_MS = 1000;

const NO_SECRET = new Uint8Array();

type ListenersOptions =
  Pick<GatewayOptions, 'id' | 'smtp' | 'inbound' | 'hostName' | 'secrets' | 'dns'>;

type OfParts = 'authenticator' | 'recipients' | 'rates' | 'hooks' | 'senderChecks';

interface ListenersPorts extends Pick<GatewayPorts, 'log' | 'metrics' | 'workers'> {
  readonly clock: Clock;
  readonly memory: Reception;
  readonly dnsWatch: DnsWatch;
  /** The same for all configurations. */
  readonly ofSessions: Omit<ListenerPorts, OfParts>;
  /** Why mail can't be committed, for the log. */
  notReadyReason(): string;
}

/** How a file stands that is followed; of a part that is not in force, it is told nobody. */
interface FileState {
  isStale: boolean;
  deferredBy: string;
}

/** Something, and what ends it. */
type Made<T> = readonly [T, () => void];

/** One of the things that sessions ask; `key`: what it was made of. */
interface Part<T> {
  readonly key: string;
  readonly made: T;
  close(): void;
}

interface Parts {
  readonly users: Part<RunningUsers | undefined>;
  readonly recipients: Part<RunningTable | undefined>;
  readonly rates: Part<RateLimits | undefined>;
  readonly hooks: Part<HookChain | undefined>;
  readonly senderChecks: Part<CheckLine | undefined>;
}

/** What sessions of one configuration go by. */
interface Generation {
  readonly parts: Parts;
  readonly ports: ListenerPorts;
}

/** A listener, by the address that the configuration gives it. */
interface Entry {
  readonly name: string;
  readonly inbound: RunningInbound;
  /** What it was made of. */
  readonly key: string;
}

export class Listeners {
  #options: ListenersOptions;
  readonly #ports: ListenersPorts;
  #generation: Generation;
  #earlier: Generation[] = [];
  /** By what follows the file. */
  readonly #files = new WeakMap<object, FileState>();
  /** Whom checks of senders ask. */
  readonly #checkDns = new Set<DnsClient>();
  #entries: readonly Entry[];
  /** Gone from the configuration, with sessions. */
  #leaving: RunningInbound[] = [];
  #ticketKeys: Buffer | undefined;
  #arePortsOpen = false;
  #arePortsBusy = false;
  #portRetryMs = 0;
  #lookMs = 0;
  #workersToldMs = 0;
  /** The last report to the other workers said anything. */
  #hadNews = false;

  constructor(options: ListenersOptions, ports: ListenersPorts) {
    this.#options = options;
    this.#ports = ports;
    this.#generation = this.#makeGeneration(options, undefined);
    this.#tellFiles();
    this.#entries = named(options.inbound).map(([name, inbound]) => ({
      name, inbound: startInbound(inbound, this.#generation.ports), key: JSON.stringify(inbound),
    }));
  }

  get ports(): readonly number[] {
    return this.#entries.map(({ inbound }) => inbound.port);
  }

  /** Also where there are none. */
  get areOpen(): boolean {
    return this.#arePortsOpen || this.#entries.length === 0;
  }

  get hooks(): HookChain | undefined {
    return this.#generation.parts.hooks.made;
  }

  get recipients(): ListenerPorts['recipients'] {
    return this.#generation.ports.recipients;
  }

  /** They are opened only when mail can be committed; that another process has one should be known before. */
  async checkPorts(): Promise<void> {
    for (const { host, port } of this.#options.inbound) {
      const error = await listenError(host, port);
      if (error !== undefined) throw error;
    }
  }

  /** Of another configuration: rejects when one of its ports that are new can't be had now. */
  async checkNewPorts(listeners: GatewayOptions['inbound']): Promise<void> {
    const known = new Set(this.#entries.map(({ name }) => name));
    for (const [name, { host, port }] of named(listeners)) {
      if (!known.has(name)) throwTaken(await listenError(host, port));
    }
  }

  setTicketKeys(keys: Buffer): void {
    this.#ticketKeys = keys;
    for (const { inbound } of this.#entries) inbound.setTicketKeys(keys);
  }

  onReport({ rates, open: { worker, listeners } }: ClientsReport, nowMs: number): void {
    this.#generation.parts.rates.made?.onReport(rates, nowMs);
    for (const [i, { inbound }] of this.#entries.entries()) {
      inbound.clients.onReport(worker, listeners[i] ?? [], nowMs);
    }
  }

  /** The ports are open exactly while mail can be committed (G6), so that a load balancer moves on. */
  tick(nowMs: number, mayOpen: boolean): void {
    this.#tellWorkers(nowMs);
    this.#watchPorts(nowMs, mayOpen);
    if (nowMs < this.#lookMs) return;
    this.#lookMs = nowMs + LOOK_MS;
    this.#tellFiles();
    this.#lookAtEarlier();
  }

  /** Rejects when something of it can't be had; then nothing has changed. */
  async prepare(options: ListenersOptions): Promise<Renewal> {
    const made: { drop(): void }[] = [];
    const drop = (): void => { for (const each of made) each.drop(); };
    try {
      const generation = this.#makeGeneration(options, this.#generation);
      made.push({ drop: () => { this.#closeParts(generation, [this.#generation, ...this.#earlier]); } });
      const entries: Entry[] = [];
      const renewals: Renewal[] = [];
      for (const [name, inbound] of named(options.inbound)) {
        const entry = await this.#prepareOne(name, inbound, generation, { made, renewals });
        entries.push(entry);
      }
      return { use: () => { this.#use(options, generation, entries, renewals); }, drop };
    } catch (error) {
      drop();
      throw error;
    }
  }

  async close(boundMs: number): Promise<void> {
    const all = [...this.#entries.map(({ inbound }) => inbound), ...this.#leaving];
    await Promise.all(all.map((one) => one.close(boundMs)));
    for (const part of partsOf([this.#generation, ...this.#earlier])) part.close();
  }

  async #prepareOne(
    name: string, options: ListenerOptions, { ports }: Generation,
    { made, renewals }: { readonly made: { drop(): void }[]; readonly renewals: Renewal[] },
  ): Promise<Entry> {
    const key = JSON.stringify(options);
    const known = this.#entries.find((entry) => entry.name === name);
    if (known !== undefined) {
      if (known.key === key && ports === this.#generation.ports) return known;
      const renewal = known.inbound.prepare(options, ports);
      made.push(renewal);
      renewals.push(renewal);
      return { ...known, key };
    }
    const inbound = startInbound(options, ports);
    made.push({ drop: () => { void inbound.close(0); } });
    inbound.hold();
    if (this.#ticketKeys !== undefined) inbound.setTicketKeys(this.#ticketKeys);
    const error = this.#arePortsOpen
      ? await inbound.openPort().catch((why: unknown) => why)
      : await listenError(options.host, options.port);
    throwTaken(error);
    return { name, inbound, key };
  }

  #use(
    options: ListenersOptions, generation: Generation, entries: readonly Entry[],
    renewals: readonly Renewal[],
  ): void {
    for (const renewal of renewals) renewal.use();
    for (const { inbound } of entries) inbound.putInForce();
    const stay = new Set(entries.map(({ inbound }) => inbound));
    for (const { inbound } of this.#entries) {
      if (stay.has(inbound)) continue;
      inbound.closePort();
      this.#leaving.push(inbound);
    }
    if (generation !== this.#generation) this.#earlier.push(this.#generation);
    // Also where sessions of before check: what is asked must not go to resolvers that are gone.
    if (JSON.stringify(options.dns) !== JSON.stringify(this.#options.dns)) {
      for (const resolver of this.#checkDns) resolver.renew(options.dns);
    }
    this.#options = options;
    this.#generation = generation;
    this.#entries = entries;
    this.#tellFiles();
    // They may have been closed, or opened, since this was prepared.
    if (!this.#arePortsOpen) for (const { inbound } of entries) inbound.closePort();
    else this.#arePortsOpen = entries.every(({ inbound }) => inbound.isOpen);
  }

  /** Of the configuration in force: files of another one may have been stale, or may be yet. */
  #tellFiles(): void {
    const { users, recipients } = this.#generation.parts;
    const { reception } = this.#ports.metrics;
    const stateOf = (made: object | undefined): FileState | undefined => made && this.#files.get(made);
    reception.followed('users', stateOf(users.made)?.isStale);
    reception.followed('recipients', stateOf(recipients.made)?.isStale);
    reception.recipientsDeferredBy = stateOf(recipients.made)?.deferredBy ?? '';
  }

  #lookAtEarlier(): void {
    if (this.#leaving.length === 0 && this.#earlier.length === 0) return;
    this.#leaving = this.#leaving.filter((inbound) => {
      if (inbound.connections > 0) return true;
      void inbound.close(0);
      return false;
    });
    const all = [...this.#entries.map(({ inbound }) => inbound), ...this.#leaving];
    const isInUse = ({ ports }: Generation): boolean => all.some((inbound) => inbound.goesBy(ports));
    for (const generation of this.#earlier.filter((one) => !isInUse(one))) {
      this.#earlier = this.#earlier.filter((one) => one !== generation);
      this.#closeParts(generation, [this.#generation, ...this.#earlier]);
    }
  }

  /** Those that none of the others has. */
  #closeParts(generation: Generation, others: readonly Generation[]): void {
    const kept = partsOf(others);
    for (const part of partsOf([generation])) if (!kept.has(part)) part.close();
  }

  /** Throws when something of it can't be made; the same where nothing is new. */
  #makeGeneration(options: ListenersOptions, before: Generation | undefined): Generation {
    const parts = this.#makeParts(options, before?.parts);
    const isSame = before !== undefined
      && Object.entries(parts).every(([name, part]) => before.parts[name as keyof Parts] === part);
    if (isSame) return before;
    const { users, recipients, rates, hooks, senderChecks } = parts;
    return {
      parts,
      ports: {
        ...this.#ports.ofSessions,
        authenticator: users.made?.authenticator, recipients: recipients.made?.table, rates: rates.made,
        hooks: hooks.made, senderChecks: senderChecks.made,
      },
    };
  }

  #makeParts(options: ListenersOptions, before: Parts | undefined): Parts {
    const { hostName, smtp, inbound, secrets } = options;
    const { usersFile, usersByHttp, recipientsFile, recipientsByHttp, rates, rateExempt } = smtp;
    const fresh: Part<unknown>[] = [];
    const part = <T>(known: Part<T> | undefined, key: unknown, make: () => Made<T>): Part<T> => {
      const text = JSON.stringify(key);
      if (known?.key === text) return known;
      const [made, close] = make();
      const one = { key: text, made, close };
      fresh.push(one);
      return one;
    };
    try {
      return {
        users: part(before?.users, [usersFile, usersByHttp, secrets[0]], () => this.#users(options)),
        recipients: part(before?.recipients, [recipientsFile, recipientsByHttp], () =>
          this.#recipients(options)),
        rates: part(before?.rates, [rates, rateExempt], () => [ratesOf(smtp), () => undefined]),
        hooks: part(before?.hooks, [smtp.hooks, hostName], () => this.#hooks(options)),
        senderChecks: part(before?.senderChecks, [hostName, inbound.some(checksSenders)], () =>
          this.#senderChecks(options)),
      };
    } catch (error) {
      for (const one of fresh) one.close();
      throw error;
    }
  }

  #users(
    { smtp: { usersFile, usersByHttp }, secrets: [secret = NO_SECRET] }: ListenersOptions,
  ): Made<RunningUsers | undefined> {
    const { clock, log, metrics: { reception } } = this.#ports;
    if (usersByHttp !== undefined) {
      return [askUsers(usersByHttp, { clock, log, meter: reception.userLookups }), () => undefined];
    }
    if (usersFile === undefined) return [undefined, () => undefined];
    const state: FileState = { isStale: false, deferredBy: '' };
    const onRead = (isStale: boolean): void => { state.isStale = isStale; };
    const users = followUsers(usersFile, secret, { clock, log, onRead });
    this.#files.set(users, state);
    return [users, () => { users.close(); }];
  }

  #recipients(
    { smtp: { recipientsFile, recipientsByHttp } }: ListenersOptions,
  ): Made<RunningTable | undefined> {
    const { clock, log, metrics: { reception } } = this.#ports;
    if (recipientsByHttp !== undefined) {
      const table = new RecipientsByHttp(recipientsByHttp, { clock, log, meter: reception.recipientLookups });
      return [{ table, close: () => undefined }, () => undefined];
    }
    if (recipientsFile === undefined) return [undefined, () => undefined];
    const state: FileState = { isStale: false, deferredBy: '' };
    const onRead = (isStale: boolean, deferredBy: string): void => {
      Object.assign(state, { isStale, deferredBy });
    };
    const followed = followTable(recipientsFile, { clock, log, onRead });
    this.#files.set(followed, state);
    return [followed, () => { followed.close(); }];
  }

  #hooks({ smtp, hostName }: ListenersOptions): Made<HookChain | undefined> {
    const { clock, log, metrics, memory } = this.#ports;
    const hooks = makeHooks(smtp.hooks, hostName, { clock, log, metrics, memory });
    return [hooks, () => { hooks?.close(); }];
  }

  /** Undefined where no listener wants it: then no thread is started for it. */
  #senderChecks({ hostName, inbound, dns }: ListenersOptions): Made<CheckLine | undefined> {
    if (!inbound.some(checksSenders)) return [undefined, () => undefined];
    const { clock, log, memory, metrics: { authentication: metrics } } = this.#ports;
    const resolver = new DnsClient(dns, clock, CHECK_QUESTIONS_AT_ONCE_MAX);
    resolver.watch = this.#ports.dnsWatch;
    const line = new CheckLine(hostName, { resolver, memory, log, metrics });
    this.#checkDns.add(resolver);
    return [line, () => {
      line.close();
      this.#checkDns.delete(resolver);
    }];
  }

  /** Once a second, what clients did here, and have open, goes to the other workers. */
  #tellWorkers(nowMs: number): void {
    const { workers } = this.#ports;
    if (workers === undefined || nowMs - this.#workersToldMs < WORKERS_TOLD_MS) return;
    this.#workersToldMs = nowMs;
    const rates = this.#generation.parts.rates.made?.takeReport() ?? [];
    const listeners = this.#entries.map(({ inbound }) => inbound.clients.report());
    const isNews = rates.length > 0 || listeners.some((clients) => clients.length > 0);
    if (isNews || this.#hadNews) workers.tell({ rates, open: { worker: this.#options.id, listeners } });
    this.#hadNews = isNews;
  }

  #watchPorts(nowMs: number, mayOpen: boolean): void {
    const isDone = this.#entries.length === 0 || mayOpen === this.#arePortsOpen;
    if (isDone || this.#arePortsBusy || nowMs < this.#portRetryMs) return;
    const { log } = this.#ports;
    if (!mayOpen) {
      for (const { inbound } of this.#entries) inbound.closePort();
      this.#arePortsOpen = false;
      const why = this.#ports.notReadyReason();
      log.warn('smtp', 'the SMTP port is closed until mail can be committed again', { why });
      return;
    }
    this.#arePortsBusy = true;
    Promise.all(this.#entries.map(({ inbound }) => inbound.openPort())).then(
      () => {
        this.#arePortsBusy = false;
        // Listeners may have come meanwhile: then once more.
        this.#arePortsOpen = this.#entries.every(({ inbound }) => inbound.isOpen);
        log.info('smtp', 'the SMTP port is open', { ports: [...this.ports] });
      },
      (error: unknown) => {
        this.#arePortsBusy = false;
        this.#portRetryMs = this.#ports.clock.nowMs() + PORT_RETRY_MS;
        const why = errorText(error);
        log.error('smtp', 'the SMTP port can not be opened; trying again', { why });
      },
    );
  }
}

/** Of a port; undefined: it can be had. */
function throwTaken(error: unknown): void {
  if (error !== undefined) throw new NotFollowed(['gateway', 'smtp', 'listen'], errorText(error));
}

/** "host:port", and which of those that ask for any free port it is. */
function named(listeners: readonly ListenerOptions[]): readonly (readonly [string, ListenerOptions])[] {
  let free = 0;
  return listeners.map((listener) => {
    const name = `${listener.host}:${String(listener.port)}`;
    return [listener.port === 0 ? `${name} ${String(free++)}` : name, listener];
  });
}

function partsOf(generations: readonly Generation[]): ReadonlySet<Part<unknown>> {
  return new Set(generations.flatMap(({ parts }) => Object.values(parts) as readonly Part<unknown>[]));
}

function checksSenders({ authservId }: ListenerOptions): boolean {
  return authservId !== '';
}

/** Undefined where nothing is limited: then nothing is counted either. */
function ratesOf({ rates, rateExempt }: ListenersOptions['smtp']): RateLimits | undefined {
  const isLimited = PARTIES.some((party) => DEEDS.some((deed) => rates[party][deed] > 0));
  if (!isLimited) return undefined;
  return new RateLimits(rates, new NetworkList(rateExempt, 'networks without limits'));
}
