/**
 * `twinpost config reload`: every gateway and store of the group reads its own file again (docs/RELOAD.md).
 * `config diff`: what that would do.
 *
 *   all go by what they have read, or would ─► 0
 *   one refuses ─► 1: it goes on as before, and says why
 *   one is not heard of, or a store does not show which secret it goes by ─► 3
 */
import type { Argv } from 'yargs';
import type {
  ConfigDiffAnswer, ReloadAnswer, SecretOfStore, StoreConfigDiffAnswer, StoreReloadAnswer,
} from '../admin-api/orders.js';
import type { AdminClient } from './admin-client.js';
import type { CliContext, Terminal } from './context.js';
import { longExample } from './examples.js';
import { findGroup, missingText, partialJson, reportMissing, withGroupOptions } from './group.js';
import type { Group } from './group.js';
import { orderOf } from './operator.js';
import { textOr } from './options.js';
import { counted, paint, printable } from './tables.js';

const KEYS_SHOWN_MAX = 10;
const EXIT_CODES = 'exit code: 0 all follow, 1 one refuses, 2 wrong usage, 3 one does not answer';
const NOT_KNOWN = 3;

export function configReloadCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'reload',
    'have every gateway and store read its file again; a bad file changes nothing',
    (args) =>
      longExample(withGroupOptions(args, EXIT_CODES)
        .option('reason', textOr('reload', 'why, for the log'))
        .option('json', { type: 'boolean', describe: 'one JSON object a line: each gateway, each store' }),
        '$0 config reload --reason "new smarthost"', 'as SIGHUP does to one process'),
    async (args) => {
      const { terminal } = context;
      const order = orderOf('config reload', args.reason);
      const isJson = args.json === true;
      const group = await findGroup(args, context);
      const answers = await askAll<ReloadAnswer | StoreReloadAnswer>(
        group, (client) => client.reload(order), (client) => client.reloadStore(order),
      );
      for (const answer of answers) {
        const lines = isJson ? [JSON.stringify(answer)] : [lineOf(answer), ...warningLines(answer)];
        for (const line of lines) terminal.print(line);
      }
      // Links stand, so that nothing else tells of a store that reads its secret last.
      const after = await group.ask('gateway', (client) => client.configDiff());
      const wrong = after.map(({ answer: { gateway, secrets = [] } }) =>
        ({ gateway, secrets: secrets.filter(isWrong) }));
      for (const { gateway, secrets } of wrong) {
        if (isJson && secrets.length > 0) terminal.print(JSON.stringify({ gateway, secrets }));
        else for (const one of secrets) terminal.print(printable(`${gateway}: ${secretText(one)}`));
      }
      const code = codeOf(group, answers.length, isJson, terminal);
      done(code === 0 ? codeOfSecrets(wrong.flatMap(({ secrets }) => secrets)) : code);
    },
  );
}

export function configDiffCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'diff',
    'what a reload would do now: keys, and queued messages that go another way',
    (args) =>
      withGroupOptions(args, EXIT_CODES)
        .option('json', { type: 'boolean', describe: 'one JSON object a line: each gateway, each store' })
        .example('$0 config diff', 'look before config reload'),
    async (args) => {
      const { terminal } = context;
      const isJson = args.json === true;
      const group = await findGroup(args, context);
      const answers = await askAll<ConfigDiffAnswer | StoreConfigDiffAnswer>(
        group, (client) => client.configDiff(), (client) => client.storeConfigDiff(),
      );
      for (const answer of answers) {
        const lines = isJson ? [JSON.stringify(answer)]
          : [diffLine(answer), ...secretLines(answer), ...warningLines(answer)];
        for (const line of lines) terminal.print(line);
      }
      const code = codeOf(group, answers.length, isJson, terminal);
      const isRefused = answers.some(({ refused }) => refused !== '');
      const after = isRefused ? 1 : codeOfSecrets(answers.flatMap(secretsOf));
      done(code === 0 ? after : code);
    },
  );
}

function codeOf(group: Group, answered: number, isJson: boolean, terminal: Terminal): number {
  const missing = group.missing('gateway', 'store');
  const refused = missing.filter(({ how }) => how === 'refused');
  for (const one of refused) {
    const mark = paint('REFUSED', 'red', terminal.isTty);
    terminal.print(isJson ? partialJson(one) : `${mark}: ${missingText(one)}`);
  }
  const silent = missing.filter(({ how }) => how !== 'refused');
  const code = reportMissing(silent, answered + refused.length, isJson, terminal);
  return code === 0 && refused.length > 0 ? 1 : code;
}

/** Gateways first, each kind by id. */
async function askAll<Answer>(
  group: Group, ofGateway: (client: AdminClient) => Promise<Answer>,
  ofStore: (client: AdminClient) => Promise<Answer>,
): Promise<readonly Answer[]> {
  const answers = await Promise.all([group.ask('gateway', ofGateway), group.ask('store', ofStore)]);
  return answers.flat().map(({ answer }) => answer);
}

function diffLine(answer: ConfigDiffAnswer | StoreConfigDiffAnswer): string {
  const { changed, refused } = answer;
  const id = nameOf(answer);
  if (refused !== '') return printable(`${id}: would be refused: ${refused}`);
  if (changed.length === 0) return printable(`${id}: nothing in the file has changed`);
  if ('store' in answer) return printable(`${id}: ${keysText(changed)}`);
  const { following } = answer;
  const mail = `${counted(following, 'queued message')} ${following === 1 ? 'goes' : 'go'} another way`;
  return printable(`${id}: ${keysText(changed)}; ${mail}`);
}

function secretsOf(answer: ConfigDiffAnswer | StoreConfigDiffAnswer): readonly SecretOfStore[] {
  return 'store' in answer ? [] : answer.secrets ?? [];
}

/** Where there is one, and all go by it, there is nothing to say. */
function secretLines(answer: ConfigDiffAnswer | StoreConfigDiffAnswer): readonly string[] {
  return secretsOf(answer).filter((one) => one.of > 1 || isWrong(one))
    .map((one) => printable(`  ${secretText(one)}`));
}

function warningLines({ warnings = [] }: { readonly warnings?: readonly string[] }): readonly string[] {
  return warnings.map((line) => printable(`  ${line}`));
}

function isDenied({ secret, why }: SecretOfStore): boolean {
  return secret === 0 && why === '';
}

function isWrong(one: SecretOfStore): boolean {
  return one.why !== '' || isDenied(one);
}

function codeOfSecrets(secrets: readonly SecretOfStore[]): number {
  if (secrets.some(isDenied)) return 1;
  return secrets.some(isWrong) ? NOT_KNOWN : 0;
}

function secretText(one: SecretOfStore): string {
  const { store, secret, of, why } = one;
  if (isDenied(one)) {
    return `${store} goes by a secret that is not in the file of this gateway, or does not name this gateway `
      + 'in its own: it will not be taken when it connects anew';
  }
  if (why !== '') return `${store} does not show which secret it goes by: ${why}`;
  return `${store} goes by secret ${String(secret)} of ${String(of)}`;
}

function nameOf(answer: { readonly gateway: string } | { readonly store: string }): string {
  return 'store' in answer ? answer.store : answer.gateway;
}

function keysText(changed: readonly string[]): string {
  const more = changed.length - KEYS_SHOWN_MAX;
  return changed.slice(0, KEYS_SHOWN_MAX).join(', ') + (more > 0 ? ` and ${String(more)} more` : '');
}

function lineOf(answer: ReloadAnswer | StoreReloadAnswer): string {
  const { hash, changed } = answer;
  // A reload looks at those at once, whatever the file says.
  const same = 'nothing in the file has changed, its certificates are read anew';
  const what = changed.length === 0 ? same : `in force: ${keysText(changed)}`;
  return printable(`${nameOf(answer)}: configuration ${hash}, ${what}`);
}
