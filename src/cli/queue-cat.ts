/**
 * `twinpost queue cat ID`: the content of one message, or its header, as it will be sent, on stdout. To a
 * file or a program go its bytes and nothing else; a terminal would obey what is in them, so there it is
 * shown escaped. The gateway logs who has read it.
 */
import type { Argv } from 'yargs';
import { ENTRY_ROW_BYTES, entryBodyInFrame } from '../protocol/entry-rows.js';
import type { EntryPage } from '../protocol/entry-page.js';
import type { CliContext } from './context.js';
import { NOT_ALL_KNOW, findGroup, missingText, withGroupOptions } from './group.js';
import { knownId, notHere } from './queue-show.js';
import { printable } from './tables.js';

const EXIT_CODES = 'the exit code is 0 when it was found, 1 when not, 3 when not and somebody could not tell';

export function queueCatCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'cat <id>',
    'the content of one message, as it will be sent; who reads it is logged',
    (args) =>
      withGroupOptions(args, EXIT_CODES)
        .positional('id', {
          type: 'string', demandOption: true, describe: 'queue id, as queue list and the log show it',
        })
        .option('headers', { type: 'boolean', describe: 'the header alone, as postcat -h' })
        .example('$0 queue cat 000H3ZK9Q4D | less', 'header and body'),
    async (args) => {
      const id = knownId('queue cat', args.id);
      const { terminal } = context;
      const part = args.headers === true ? 'header' : 'all';
      const group = await findGroup(args, context);
      const answers = await group.ask('gateway', (client) => client.content(id, part));
      for (const { answer } of answers) {
        const content = answer === undefined ? undefined : contentOf(answer.page);
        if (content === undefined) continue;
        terminal.write(terminal.isScreen ? escapedContent(content) : content);
        done(0);
        return;
      }
      const missing = group.missing('gateway');
      // Who refuses to show it has not said that there is none.
      if (answers.length > 0) terminal.error(`twinpost: ${notHere(id)}`);
      for (const one of missing) terminal.error(`twinpost: ${missingText(one)}`);
      const isHeard = answers.length === 0 && missing.every(({ how }) => how === 'refused');
      done(missing.length > 0 && !isHeard ? NOT_ALL_KNOW : 1);
    },
  );
}

/** Of the first entry. */
function contentOf({ rows, payload }: EntryPage): Uint8Array | undefined {
  if (rows.length < ENTRY_ROW_BYTES) return undefined;
  return payload.subarray(0, entryBodyInFrame(new DataView(rows.buffer, rows.byteOffset, rows.length), 0));
}

/** Line ends and tabs stay; bytes that are no UTF-8 are shown as such. */
export function escapedContent(content: Uint8Array): string {
  const lines = new TextDecoder().decode(content).split(/\r?\n/);
  return lines.map((line) => line.split('\t').map(printable).join('\t')).join('\n');
}
