/**
 * Tells domains once a day (UTC) what came of TLS with their hosts (RFC 8460), where they ask for it: by mail
 * of our own, which goes through the queues as any, or by HTTPS.
 *
 *   counted (tls-counts.ts) ─ the day is over ─► due ─ _smtp._tls.DOMAIN asked ─ no record ─► forgotten
 *                                                 ▲         │ mailto: ─► composed, signed, submitted
 *                                                 │         │ https:  ─► posted, once
 *                                                 └─────────┴ no answer, or no room for mail: again after
 *                                                             AGAIN_MS, so often
 *
 * One domain a tick, so that ten thousand take an hour. A day that is over is due when all of the one before
 * was begun; what comes of a day after that (handover.ts) gets a report of its own. Owns what is due: at a
 * stop, what nobody was asked about is kept (running-tls-reports.ts), and the rest is gone.
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
import type { CountsOfDay } from './counts-file.js';
import { reportJson, reportMail } from './report-document.js';
import type { ReportedDay, Reporter } from './report-document.js';
import { DAY_MS } from './tls-counts.js';
import type { TlsCounts } from './tls-counts.js';

export interface TlsReporterPorts {
  readonly counts: TlsCounts;
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
  /** Those of which nobody knows yet whether the domain asks for a report. */
  readonly #unasked = new Set<Due>();
  readonly #settleMs: number;
  /** When a day that is over was first seen. */
  #overMs: number | undefined;
  #tickedMs = -Infinity;

  /** `settleMs`: how long a day that is over waits for what others have counted of it. */
  constructor(reporter: Reporter, settleMs: number, ports: TlsReporterPorts) {
    this.#reporter = reporter;
    this.#settleMs = settleMs;
    this.#ports = ports;
  }

  tick(nowMs: number): void {
    if (nowMs - this.#tickedMs < TICK_MS) return;
    this.#tickedMs = nowMs;
    if (this.#unasked.size === 0) this.#endDay(nowMs);
    const [next] = this.#due;
    if (next === undefined || nowMs < next.notBeforeMs || !this.#ports.reception.accepting) return;
    this.#due.shift();
    this.#begin(next);
  }

  /** What a restart begins with. */
  * unasked(): Generator<CountsOfDay> {
    for (const { day: { fromWallMs, counts } } of this.#unasked) yield [fromWallMs / DAY_MS, counts];
  }

  #endDay(nowMs: number): void {
    const { counts, log, clock } = this.#ports;
    const today = Math.floor(clock.wallMs() / DAY_MS);
    const day = counts.days().find((each) => each < today);
    this.#overMs = day === undefined ? undefined : this.#overMs ?? nowMs;
    if (day === undefined || this.#overMs === undefined || nowMs - this.#overMs < this.#settleMs) return;
    const [fromWallMs, untilWallMs] = [day * DAY_MS, (day + 1) * DAY_MS];
    const domains = counts.domains(day);
    for (const domain of domains) {
      const taken = counts.take(day, domain);
      if (taken === undefined) continue;
      const due = { day: { counts: taken, fromWallMs, untilWallMs }, uri: '', notBeforeMs: 0, tries: 0 };
      this.#due.push(due);
      this.#unasked.add(due);
    }
    log.info('tlsrpt', 'a day of TLS is reported', { domains: domains.length });
  }

  #begin(due: Due): void {
    if (due.uri !== '') return this.#send(due);
    this.#ports.resolver.ask(tlsReportName(due.day.counts.domain), 'TXT', (answer) => {
      if (answer.kind === 'failed') return this.#again(due, `nobody knows whom to tell: ${answer.why}`);
      this.#asked(due);
      for (const uri of reportUris(answer)) this.#send({ ...due, uri, tries: 0 });
    });
  }

  #asked(due: Due): void {
    this.#unasked.delete(due);
    this.#ports.counts.changes++;
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
    if (found === undefined) return this.#failed(due.day.counts.domain, `no way to '${to}'`);
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
    if (due.tries < TRIES_MAX) {
      this.#due.push(due);
      return;
    }
    this.#asked(due);
    this.#failed(due.day.counts.domain, why);
  }

  #post(day: ReportedDay, uri: string): void {
    const { lookup, https, reception } = this.#ports;
    if (!URL.canParse(uri)) return this.#failed(day.counts.domain, `'${uri}' is no address`);
    const { hostname: host, port, pathname, search, username } = new URL(uri);
    const isOdd = port !== '' || username !== '';
    if (isOdd) return this.#failed(day.counts.domain, `'${uri}' has a port or a user`);
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
        if (answer.kind === 'failed') return this.#failed(day.counts.domain, answer.why);
        const isTaken = answer.status >= 200 && answer.status < 300;
        if (!isTaken) return this.#failed(day.counts.domain, `${host} answers ${String(answer.status)}`);
        this.#ports.onSent('https');
      });
    });
  }

  #failed(domain: string, why: string): void {
    this.#ports.onSent('failed');
    this.#ports.log.debug('tlsrpt', 'a report on TLS can not be sent', { domain, why });
  }
}
