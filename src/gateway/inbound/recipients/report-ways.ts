/**
 * Where reports to senders go: as mail to them would, by the table of recipients for domains that we relay
 * for, else where the domain leads. Asked when a report is written (queue/reports/report-writer.ts), long
 * after reception.
 *
 *   reverse-path ─► made here (`smtp.srs`, `verp`)   whom it stands for; NOBODY_BEHIND where that is nobody
 *                ─► postmaster, abuse   whoever reads them
 *                ─► in the table        its next hop; of an alias of several, the first of them
 *                ─► somebody is asked, or nobody can tell now    NOT_READY: the report waits for the answer
 *                ─► nothing is known    where its domain leads
 *
 * Whoever is asked is asked for clients too, in one line: of that, reports that are owed take a small part,
 * however many there are; the others wait until it is their turn.
 */
import type { ToAscii } from '../../../platform/ports.js';
import { NOBODY_BEHIND, NO_WAY_BACK, NOT_READY, OWN_ORIGIN } from '../../mail-types.js';
import type { FindReportWay, Router } from '../../mail-types.js';
import { normalizeDomain, parsePath } from '../../../smtp/address.js';
import { RelayPolicy } from '../policy/relay-policy.js';
import { RoleAddresses } from '../policy/role-addresses.js';
import { TABLE_UNREADABLE } from '../session/replies.js';
import { byDomain, destinationsOf } from './destinations.js';
import type { DestinationDesk, DestinationPorts } from './destinations.js';
import { ALIAS_TARGETS_MAX } from './listing.js';
import type { RecipientTable } from './listing.js';
import { OWN_REPORT, whoIsMeant } from './who-is-meant.js';
import type { MadeAddresses } from '../options.js';

/** Four times what is asked at once (recipients-by-http.ts): a RCPT behind them waits for so many answers. */
const ASKING_MAX = 256;
/** Of those who wait for one answer. Who looks again each second is one of them each time. */
const HEARING_MAX = 256;

export interface ReportWayOptions {
  readonly hostName: string;
  readonly postmaster: string;
  readonly relayDomains: readonly string[];
}

export function reportWays(
  options: ReportWayOptions,
  ports: DestinationPorts & { readonly toAscii: ToAscii; readonly made: MadeAddresses },
): FindReportWay {
  const policy = new RelayPolicy({ networks: [], domains: options.relayDomains }, ports.toAscii);
  const roles = new RoleAddresses(options, policy, ports.made);
  const desk: DestinationDesk = { policy, roles, ports, lookups: 0 };
  const questions = new Questions(ports.recipients);
  return (reversePath, onKnown = () => undefined) => {
    const path = parsePath(`<${reversePath}>`, 0, ports.toAscii);
    if (typeof path === 'string') return byDomainOf(reversePath, ports.router, ports.toAscii);
    // Its domain leads here, to where no mail is sent.
    const meant = whoIsMeant(path, OWN_REPORT, ports);
    if ('reply' in meant || meant.came?.to === '') return NOBODY_BEHIND;
    const to = roles.destinationOf(meant.wanted) ?? meant.wanted;
    const found = destinationsOf(to, desk, OWN_ORIGIN, ALIAS_TARGETS_MAX, 'bounce');
    if ('unasked' in found) {
      questions.ask(found.unasked, onKnown);
      return NOT_READY;
    }
    // As mail to him would: a way by the domain may be none, or lead to whom does not know him.
    if (found === TABLE_UNREADABLE) return NOT_READY;
    const known = 'reply' in found ? byDomain(to, desk, OWN_ORIGIN, 'bounce') : found;
    return 'reply' in known ? NO_WAY_BACK : known[0] ?? NO_WAY_BACK;
  };
}

/** What is asked for reports. Who finds no room here looks again by itself. */
class Questions {
  readonly #table: RecipientTable | undefined;
  readonly #open = new Map<string, (() => void)[]>();

  constructor(table: RecipientTable | undefined) {
    this.#table = table;
  }

  ask(keys: readonly string[], onKnown: () => void): void {
    const question = keys.join();
    const hearing = this.#open.get(question);
    if (hearing !== undefined) {
      if (hearing.length < HEARING_MAX) hearing.push(onKnown);
      return;
    }
    if (this.#open.size >= ASKING_MAX) return;
    const first = [onKnown];
    this.#open.set(question, first);
    this.#table?.learn?.(keys, (isFull) => {
      this.#open.delete(question);
      // Who looked again at once would find the line as full.
      if (isFull !== true) for (const each of first) each();
    });
  }
}

/** As its client wrote it, which may be in U-labels (RFC 6531 3.3), or no address at all. */
export function byDomainOf(
  reversePath: string, router: Pick<Router, 'route'>, toAscii: ToAscii,
): ReturnType<FindReportWay> {
  const domain = normalizeDomain(reversePath.slice(reversePath.lastIndexOf('@') + 1), toAscii);
  const route = router.route(domain, 'bounce', reversePath, OWN_ORIGIN);
  return route === undefined ? NO_WAY_BACK : { route, address: reversePath };
}
