/** `twinpost table`: makes and asks the table of recipients that `smtp.recipients` names. */
import type { Argv } from 'yargs';
import { errorText } from '../base/error-text.js';
import { formatBytes, formatCount } from '../base/units.js';
import { parsePath } from '../smtp/address.js';
import { openTable } from '../gateway/inbound/recipients-file.js';
import type { TableFile } from '../gateway/inbound/recipients-file.js';
import { domainKey, tableKey } from '../gateway/inbound/recipients/listing.js';
import type { Listing } from '../gateway/inbound/recipients/listing.js';
import { toAscii } from '../platform/node/idna.js';
import type { CliContext } from './context.js';
import { CliError, UsageError } from './context.js';
import { TableTextError, buildTable } from './table/build.js';

/** Progress from then on: nobody waits for less. */
const SILENT_MS = 2000;
const TOLD_EVERY_MS = 200;
/** RFC 5321 4.5.1 (gateway/inbound/policy/role-addresses.ts). */
const SPECIAL =
  'it is taken whatever a table says: it goes to smtp.postmaster, else where its domain leads';

export function tableCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command('table', 'make and ask a table of recipients', (table) => {
    buildVerb(table, context, done);
    findVerb(table, context, done);
    return table
      .example('$0 table build recipients.txt recipients.table', 'gateways notice it within a second')
      .example('$0 table find recipients.table anna@example.com', 'what the table says of her')
      .demandCommand(1, 'table what? twinpost table --help lists the verbs');
  });
}

function buildVerb(table: Argv, context: CliContext, done: (code: number) => void): void {
  table.command(
    'build <text> <file>',
    'make FILE out of a text: an address a line, or @DOMAIN for all others, with nothing behind it, '
      + 'route=NAME or to=ADDRESS,…',
    (args) =>
      args
        .positional('text', { type: 'string', demandOption: true, describe: 'addresses, one a line' })
        .positional('file', { type: 'string', demandOption: true, describe: 'the table; replaced at once' })
        .option('json', { type: 'boolean', describe: 'one JSON object' }),
    ({ text, file, json }) => {
      const { terminal } = context;
      try {
        const report = buildTable(text, file, progressOn(context, json === true));
        if (json === true) terminal.print(JSON.stringify(report));
        else {
          const { entries, aliases, routes, bytes, warnings, nowhere } = report;
          for (const warning of warnings) terminal.error(`${text}: ${warning}`);
          const hidden = nowhere - warnings.length;
          if (hidden > 0) terminal.error(`${text}: ${formatCount(hidden)} more aliases that lead nowhere`);
          terminal.print(`${file}: ${formatCount(entries)} addresses, ${formatCount(aliases)} aliases, `
            + `${formatCount(routes)} routes, ${formatBytes(bytes)}`);
        }
        done(0);
      } catch (error) {
        const said = errorText(error);
        const isOfText = error instanceof TableTextError;
        throw new CliError(`table: ${isOfText ? said.replace(/^/gm, `${text}: `) : said}`);
      }
    },
  );
}

function findVerb(table: Argv, context: CliContext, done: (code: number) => void): void {
  table.command(
    'find <file> <address>',
    'what a table says of an address; exit code 1 when it is not there',
    (args) =>
      args
        .positional('file', { type: 'string', demandOption: true, describe: 'the table' })
        .positional('address', { type: 'string', demandOption: true, describe: 'the address' })
        .option('json', { type: 'boolean', describe: 'one JSON object' }),
    async ({ file, address, json }) => {
      const { listing, by } = await find(file, address);
      const found = listing !== undefined;
      const other = found && by !== address ? ` (by ${by})` : '';
      const isRole = /^(postmaster|abuse)@/i.test(address);
      const special = isRole ? `; but at a relay domain ${SPECIAL}` : '';
      if (json === true) {
        const role = isRole ? { role: true } : {};
        context.terminal.print(JSON.stringify({ address, found, by, ...listing, ...role }));
      } else {
        const says = found ? wordsOf(listing) : 'not there';
        context.terminal.print(`${address}: ${says}${other}${special}`);
      }
      done(listing === undefined ? 1 : 0);
    },
  );
}

interface Found {
  readonly listing: Listing | undefined;
  /** The line that says so: of the address, or of its domain. */
  readonly by: string;
}

async function find(file: string, address: string): Promise<Found> {
  const path = parsePath(`<${address}>`, 0, toAscii);
  if (typeof path === 'string' || path.domain === '') {
    throw new UsageError(`table: '${address}' is no address`);
  }
  let table: TableFile;
  try {
    table = await openTable(file);
  } catch (error) {
    throw new CliError(`table: ${errorText(error)}`);
  }
  try {
    const own = table.find(tableKey(path.address, path.domain));
    if (own !== undefined) return { listing: own, by: address };
    return { listing: table.find(domainKey(path.domain)), by: domainKey(path.domain) };
  } finally {
    table.close();
  }
}

function wordsOf({ route, to }: Listing): string {
  if (to.length > 0) return `goes to ${to.join(', ')}`;
  return route === '' ? 'goes where its domain leads' : `goes by route ${route}`;
}

function progressOn({ terminal }: CliContext, isJson: boolean): (done: number, all: number) => void {
  const startMs = performance.now();
  let toldMs = startMs + SILENT_MS - TOLD_EVERY_MS;
  return (built, all) => {
    const nowMs = performance.now();
    if (isJson || !terminal.errorIsTty || nowMs < toldMs + TOLD_EVERY_MS) return;
    toldMs = nowMs;
    terminal.error(`${formatCount(built)} of ${formatCount(all)} addresses`);
  };
}
