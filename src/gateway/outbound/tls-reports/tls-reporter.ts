/**
 * Tells domains once a day (UTC) what came of TLS with their hosts (RFC 8460), where they ask for it: by mail
 * of our own, which goes through the queues as any, or by HTTPS.
 *
 *   counted (tls-counts.ts) ─ the day is over ─► due ─► under way: _smtp._tls.DOMAIN asked
 *                                                 ▲         │ no record ─► forgotten
 *                                                 │         │ mailto: ─► composed, signed, submitted
 *                                                 │         │ https:  ─► posted, once
 *                                                 └─────────┴ no answer, or no room for mail: again after
 *                                                             AGAIN_MS, so often
 *
 * One domain a tick, so that ten thousand take an hour. A day that is over is due when all of the one before
 * was begun. Owns what is due or under way: a stop keeps it (running-tls-reports.ts), and the next process
 * begins it anew. After close() answers are ignored, so that this one does not tell what the next one will;
 * but what is stored then is told. A POST that a stop cuts off is made once more, whoever has it already.
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
import { DAY_MS } from './tls-counts.js';
import type { TlsCounts, UntoldCounts } from './tls-counts.js';

export interface TlsReporterPorts {
  readonly counts: TlsCounts;
  /** Whether all is in `counts` that was counted of a day. */
  isWhole(day: number): boolean;
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
/** Reports on their way: strangers may let each POST wait as long. */
const UNDER_WAY_MAX = 100;
/** As a mailto: has it; what is quoted or encoded is left out. */
const ADDRESS = /^[A-Za-z0-9._+=~-]{1,64}@([A-Za-z0-9.-]{1,253})$/;

interface Due extends UntoldCounts {
  notBeforeMs: number;
  tries: number;
}

export class TlsReporter {
  readonly #ports: TlsReporterPorts;
  readonly #due: Due[] = [];
  readonly #underWay = new Set<Due>();
  #isClosed = false;
  #tickedMs = -Infinity;

  constructor(ports: TlsReporterPorts) {
    this.#ports = ports;
  }

  /** `reporter`: in whose name reports are sent that begin now. */
  tick(nowMs: number, reporter: Reporter): void {
    if (nowMs - this.#tickedMs < TICK_MS || this.#underWay.size >= UNDER_WAY_MAX) return;
    this.#tickedMs = nowMs;
    if (this.#due.length === 0) this.#endDay();
    const [next] = this.#due;
    if (next === undefined || nowMs < next.notBeforeMs || !this.#ports.reception.accepting) return;
    this.#due.shift();
    this.#begin(next, reporter);
  }

  takeUp({ day, to, counts }: UntoldCounts): void {
    this.#due.push({ day, to, counts, notBeforeMs: 0, tries: 0 });
  }

  /** What was not begun of this day, and of those before, tells nobody anything any more. */
  drop(throughDay: number): void {
    const kept = this.#due.filter(({ day }) => day > throughDay);
    this.#due.splice(0, this.#due.length, ...kept);
  }

  close(): void { this.#isClosed = true; }

  untold(): readonly UntoldCounts[] {
    return [...this.#due, ...this.#underWay].map(({ day, to, counts }) => ({ day, to, counts }));
  }

  #endDay(): void {
    const { counts, log, clock, isWhole } = this.#ports;
    const today = Math.floor(clock.wallMs() / DAY_MS);
    const day = counts.days().find((each) => each < today);
    if (day === undefined || !isWhole(day)) return;
    const domains = counts.domains(day);
    for (const domain of domains) {
      const taken = counts.take(day, domain);
      if (taken !== undefined) this.takeUp({ day, to: '', counts: taken });
    }
    log.info('tlsrpt', 'a day of TLS is reported', { domains: domains.length });
  }

  #begin(due: Due, reporter: Reporter): void {
    this.#underWay.add(due);
    if (due.to !== '') return this.#send(due, reporter);
    this.#ports.resolver.ask(tlsReportName(due.counts.domain), 'TXT', (answer) => {
      if (this.#isClosed) return;
      if (answer.kind === 'failed') return this.#again(due, `nobody knows whom to tell: ${answer.why}`);
      this.#underWay.delete(due);
      for (const to of reportUris(answer)) this.#begin({ ...due, to, tries: 0 }, reporter);
    });
  }

  #send(due: Due, reporter: Reporter): void {
    const { to } = due;
    if (to.toLowerCase().startsWith('mailto:')) this.#mail(due, to.slice('mailto:'.length), reporter);
    else this.#post(due, reporter);
  }

  #mail(due: Due, to: string, reporter: Reporter): void {
    const { reception, router, signer, clock } = this.#ports;
    const host = ADDRESS.exec(to)?.[1];
    const found = host === undefined ? undefined
      : router.route(host.toLowerCase(), 'mail', to, OWN_ORIGIN);
    if (found === undefined) return this.#failed(due, `no way to '${to}'`);
    // It is to arrive though TLS fails (RFC 8460 3).
    const route = router.withTls(found, 'optional');
    const messageId = reception.nextMessageId();
    const id = formatMessageId(messageId);
    const day = reported(due);
    const gzipped = gzipSync(reportJson(day, reporter, id));
    const content = reportMail(day, reporter, { to, id, nowWallMs: clock.wallMs(), gzipped });
    const submit = (fields: Uint8Array | undefined): void => {
      if (this.#isClosed) return;
      const chunks = fields === undefined ? [content] : [joined([fields, content])];
      const recipients = [{ address: to, notify: 0, orcpt: '' }];
      reception.submit({
        messageId, reversePath: reporter.contact, groups: [{ route, recipients }], chunks,
        contentBytes: chunks.reduce((sum, { length }) => sum + length, 0), flags: 0, ret: 0, envid: '',
        client: '', helo: '',
        settle: (outcome) => {
          if (outcome === COMMITTED) this.#sent(due, 'mail');
          else if (!this.#isClosed) this.#again(due, 'it could not be stored');
        },
      });
    };
    if (signer?.signReport(content, submit) !== true) submit(undefined);
  }

  #again(due: Due, why: string): void {
    due.tries++;
    if (due.tries >= TRIES_MAX) return this.#failed(due, why);
    due.notBeforeMs = this.#ports.clock.nowMs() + AGAIN_MS;
    this.#underWay.delete(due);
    this.#due.push(due);
  }

  #post(due: Due, reporter: Reporter): void {
    const { lookup, https, reception } = this.#ports;
    const uri = due.to;
    if (!URL.canParse(uri)) return this.#failed(due, `'${uri}' is no address`);
    const { hostname: host, port, pathname, search, username } = new URL(uri);
    if (port !== '' || username !== '') return this.#failed(due, `'${uri}' has a port or a user`);
    const id = formatMessageId(reception.nextMessageId());
    const bytes = gzipSync(reportJson(reported(due), reporter, id));
    lookup.addresses(host, (answers) => {
      if (this.#isClosed) return;
      const all = inTurns(answers.map((answer) => (answer.kind === 'found' ? answer.records : [])));
      const addresses = lookup.allowsPrivate ? all : all.filter((address) => whyNotPublic(address) === '');
      const question = {
        host, path: `${pathname}${search}`, addresses, body: { type: 'application/tlsrpt+gzip', bytes },
        answerBytesMax: 0, withinMs: POST_MS,
      };
      https.ask(question, (answer) => {
        if (answer.kind !== 'failed' && answer.status >= 200 && answer.status < 300) this.#sent(due, 'https');
        else if (this.#isClosed) return;
        else if (answer.kind === 'failed') this.#failed(due, answer.why);
        else this.#failed(due, `${host} answers ${String(answer.status)}`);
      });
    });
  }

  #sent(due: Due, how: 'mail' | 'https'): void {
    this.#underWay.delete(due);
    this.#ports.onSent(how);
  }

  #failed(due: Due, why: string): void {
    this.#underWay.delete(due);
    this.#ports.onSent('failed');
    const { domain } = due.counts;
    this.#ports.log.debug('tlsrpt', 'a report on TLS can not be sent', { domain, why });
  }
}

function reported({ day, counts }: UntoldCounts): ReportedDay {
  return { counts, fromWallMs: day * DAY_MS, untilWallMs: (day + 1) * DAY_MS };
}
