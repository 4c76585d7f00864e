/**
 * Tells domains once a day (UTC) what came of TLS with their hosts (RFC 8460), where they ask for it: by mail
 * of our own, which goes through the queues as any, or by HTTPS.
 *
 *   counted (tls-tally.ts) ─ the day is over ─► due ─ _smtp._tls.DOMAIN asked ─ no record ─► forgotten
 *                                                ▲         │ mailto: ─► composed, signed, submitted
 *                                                │         │ https:  ─► posted, once
 *                                                └─────────┴ no answer, or no room for mail: again after
 *                                                            AGAIN_MS, so often
 *
 * One domain a tick, so that ten thousand take an hour. Each gateway, and each of several workers, reports on
 * what it did itself. Owns what is due; it is gone when the process ends.
 */
import { gzipSync } from 'node:zlib';
import { joined } from '../../../base/joined.js';
import { formatMessageId } from '../../../base/text-id.js';
import type { Https } from '../../../platform/https.js';
import type { Clock, EventLog } from '../../../platform/ports.js';
import type { Resolver } from '../../../platform/resolver.js';
import type { ReportSigner } from '../../queue/reports/report-writer.js';
import { COMMITTED, OWN_ORIGIN } from '../../mail-types.js';
import type { Reception, Router } from '../../mail-types.js';
import type { MxLookup } from '../mx-lookup.js';
import { inTurns } from '../pure/address-turns.js';
import { whyNotPublic } from '../pure/public-address.js';
import { reportUris, tlsReportName } from '../pure/tls-results.js';
import { reportJson, reportMail } from './report-document.js';
import type { ReportedDay, Reporter } from './report-document.js';
import type { TlsTally } from './tls-tally.js';

export interface TlsReporterPorts {
  readonly tally: TlsTally;
  readonly clock: Clock;
  readonly log: EventLog;
  readonly resolver: Resolver;
  readonly lookup: MxLookup;
  readonly https: Https;
  readonly reception: Pick<Reception, 'accepting' | 'nextMessageId' | 'submit'>;
  readonly router: Router;
  /** Undefined: reports leave unsigned. */
  readonly signer: ReportSigner | undefined;
  onSent(how: 'mail' | 'https' | 'failed'): void;
}

const DAY_MS = 86_400_000;
const TICK_MS = 250;
const AGAIN_MS = 600_000;
const TRIES_MAX = 6;
const POST_MS = 60_000;
const POST_ANSWER_BYTES_MAX = 64 * 1024;
/** As a mailto: has it; what is quoted or encoded is left out. */
const ADDRESS = /^[A-Za-z0-9._+=~-]{1,64}@([A-Za-z0-9.-]{1,253})$/;

interface Due {
  readonly day: ReportedDay;
  /** The one who does not have it yet; '': the domain is not asked yet. */
  readonly uri: string;
  notBeforeMs: number;
  tries: number;
}

export class TlsReporter {
  readonly #reporter: Reporter;
  readonly #ports: TlsReporterPorts;
  readonly #due: Due[] = [];
  #day: number;
  #tickedMs = -Infinity;

  constructor(reporter: Reporter, ports: TlsReporterPorts) {
    this.#reporter = reporter;
    this.#ports = ports;
    this.#day = Math.floor(ports.clock.wallMs() / DAY_MS);
  }

  tick(nowMs: number): void {
    if (nowMs - this.#tickedMs < TICK_MS) return;
    this.#tickedMs = nowMs;
    const day = Math.floor(this.#ports.clock.wallMs() / DAY_MS);
    if (day > this.#day) this.#endDay(day);
    const [next] = this.#due;
    if (next === undefined || nowMs < next.notBeforeMs || !this.#ports.reception.accepting) return;
    this.#due.shift();
    this.#begin(next);
  }

  #endDay(day: number): void {
    const [fromWallMs, untilWallMs] = [this.#day * DAY_MS, day * DAY_MS];
    this.#day = day;
    for (const [domain, tally] of this.#ports.tally.take()) {
      this.#due.push({ day: { domain, tally, fromWallMs, untilWallMs }, uri: '', notBeforeMs: 0, tries: 0 });
    }
    const { log } = this.#ports;
    if (this.#due.length > 0) log.info('tlsrpt', 'a day of TLS is reported', { domains: this.#due.length });
  }

  #begin(due: Due): void {
    if (due.uri !== '') return this.#send(due);
    this.#ports.resolver.ask(tlsReportName(due.day.domain), 'TXT', (answer) => {
      if (answer.kind === 'failed') return this.#again(due, `nobody knows whom to tell: ${answer.why}`);
      for (const uri of reportUris(answer)) this.#send({ ...due, uri, tries: 0 });
    });
  }

  #send(due: Due): void {
    const { day, uri } = due;
    if (uri.toLowerCase().startsWith('mailto:')) this.#mail(due, uri.slice('mailto:'.length));
    else this.#post(day, uri);
  }

  #mail(due: Due, to: string): void {
    const { reception, router, signer, clock } = this.#ports;
    const host = ADDRESS.exec(to)?.[1];
    const found = host === undefined ? undefined
      : router.route(host.toLowerCase(), 'mail', to, OWN_ORIGIN);
    if (found === undefined) return this.#failed(due.day.domain, `no way to '${to}'`);
    // It is to arrive though TLS fails (RFC 8460 3).
    const route = router.withTls(found, 'optional');
    const messageId = reception.nextMessageId();
    const id = formatMessageId(messageId);
    const gzipped = gzipSync(reportJson(due.day, this.#reporter, id));
    const content = reportMail(due.day, this.#reporter, { to, id, nowWallMs: clock.wallMs(), gzipped });
    const submit = (fields: Uint8Array | undefined): void => {
      const chunks = fields === undefined ? [content] : [joined([fields, content])];
      const recipients = [{ address: to, notify: 0, orcpt: '' }];
      reception.submit({
        messageId, reversePath: this.#reporter.contact, groups: [{ route, recipients }], chunks,
        contentBytes: chunks.reduce((sum, { length }) => sum + length, 0), flags: 0, ret: 0, envid: '',
        client: '', helo: '',
        settle: (outcome) => {
          if (outcome === COMMITTED) this.#ports.onSent('mail');
          else this.#again(due, 'it could not be stored');
        },
      });
    };
    if (signer?.signReport(content, submit) !== true) submit(undefined);
  }

  #again(due: Due, why: string): void {
    due.tries++;
    due.notBeforeMs = this.#ports.clock.nowMs() + AGAIN_MS;
    if (due.tries < TRIES_MAX) this.#due.push(due);
    else this.#failed(due.day.domain, why);
  }

  #post(day: ReportedDay, uri: string): void {
    const { lookup, https, reception } = this.#ports;
    if (!URL.canParse(uri)) return this.#failed(day.domain, `'${uri}' is no address`);
    const { hostname: host, port, pathname, search, username } = new URL(uri);
    if (port !== '' || username !== '') return this.#failed(day.domain, `'${uri}' has a port or a user`);
    const id = formatMessageId(reception.nextMessageId());
    const bytes = gzipSync(reportJson(day, this.#reporter, id));
    lookup.addresses(host, (answers) => {
      const all = inTurns(answers.map((answer) => (answer.kind === 'found' ? answer.records : [])));
      const addresses = lookup.allowsPrivate ? all : all.filter((address) => whyNotPublic(address) === '');
      const question = {
        host, path: `${pathname}${search}`, addresses, body: { type: 'application/tlsrpt+gzip', bytes },
        answerBytesMax: POST_ANSWER_BYTES_MAX, withinMs: POST_MS,
      };
      https.ask(question, (answer) => {
        if (answer.kind === 'failed') return this.#failed(day.domain, answer.why);
        const isTaken = answer.status >= 200 && answer.status < 300;
        if (!isTaken) return this.#failed(day.domain, `${host} answers ${String(answer.status)}`);
        this.#ports.onSent('https');
      });
    });
  }

  #failed(domain: string, why: string): void {
    this.#ports.onSent('failed');
    this.#ports.log.debug('tlsrpt', 'a report on TLS can not be sent', { domain, why });
  }
}
