/**
 * Aliases of a table that was just built which lead nowhere, as reception would find when mail comes: each is
 * followed by the very code that does it (gateway/inbound/recipients/destinations.ts). No errors: mail to all
 * others goes on, and a table may be made in steps. Domains of the table are taken for relay domains.
 */
import { parsePath } from '../../smtp/address.js';
import { RelayPolicy } from '../../gateway/inbound/policy/relay-policy.js';
import { RoleAddresses } from '../../gateway/inbound/policy/role-addresses.js';
import { NONE_MADE } from '../../gateway/inbound/options.js';
import { destinationsOf } from '../../gateway/inbound/recipients/destinations.js';
import type { DestinationDesk, DestinationPorts } from '../../gateway/inbound/recipients/destinations.js';
import { TableFile } from '../../gateway/inbound/recipients-file.js';
import { domainKey, tableKey } from '../../gateway/inbound/recipients/listing.js';
import { OWN_ORIGIN } from '../../gateway/mail-types.js';
import { createRouter } from '../../gateway/queue/router.js';
import { toAscii } from '../../platform/node/idna.js';

/** Wherever a domain leads: that is the configuration's to say. */
const ANYWHERE = {
  domains: ['*'], name: 'any', perDomain: false, lanes: 1,
  nextHop: { protocol: 'smtp', host: 'any', port: 25 },
  ordering: 'fifo', concurrency: 1, lengthMax: 1,
} as const;
/** Who reads mail to postmaster and abuse is, too. */
const SOMEBODY = { hostName: '', postmaster: 'postmaster@reader.invalid' };

export class AliasJudge {
  readonly #table: TableFile;
  readonly #desk: DestinationDesk;

  /** `domains`: those that the table has entries of. Throws an Error that names the file. */
  constructor(file: string, domains: Iterable<string>) {
    this.#table = new TableFile(file);
    const policy = new RelayPolicy({ networks: [], domains: [...domains] }, toAscii);
    const anywhere = createRouter([ANYWHERE]);
    // So do routes that the table names.
    const router: DestinationPorts['router'] = {
      route: (domain, ...rest) => anywhere.route(domain, ...rest),
      routeNamed: (_name, domain) => anywhere.route(domain, 'mail', '', OWN_ORIGIN),
      isTooLong: (...where) => anywhere.isTooLong(...where),
    };
    const roles = new RoleAddresses(SOMEBODY, policy, NONE_MADE);
    this.#desk = { policy, roles, ports: { router, toAscii, recipients: this.#table }, lookups: 0 };
  }

  /** Why mail to an alias goes nowhere; '' when it does not. */
  whyNowhere(alias: string, targets: readonly string[]): string {
    const path = parsePath(`<${alias.startsWith('@') ? `any${alias}` : alias}>`, 0, toAscii);
    if (typeof path === 'string') return '';
    const found = destinationsOf(path, this.#desk, OWN_ORIGIN, Infinity);
    if (!('reply' in found)) return '';
    const missing = targets.find((target) => this.#isMissing(target));
    if (missing === undefined) {
      return 'its aliases go in a circle, are more than 10 behind one another, or end in one that leads '
        + 'nowhere';
    }
    const domain = missing.slice(missing.lastIndexOf('@'));
    return `'${missing}' is not in the table, and there is no line '${domain}'`;
  }

  close(): void {
    this.#table.close();
  }

  #isMissing(target: string): boolean {
    const { policy, roles } = this.#desk;
    const path = parsePath(`<${target}>`, 0, toAscii);
    if (typeof path === 'string' || !policy.isRelayDomain(path.domain)) return false;
    if (roles.destinationOf(path) !== undefined) return false;
    return this.#table.find(tableKey(path.address, path.domain)) === undefined
      && this.#table.find(domainKey(path.domain)) === undefined;
  }
}
