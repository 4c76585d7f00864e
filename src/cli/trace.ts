/**
 * `twinpost trace client NETWORK` and `trace server HOST`: what is said on SMTP sessions, live, at all
 * gateways of the group. Passwords and content are not told (smtp/session-tap.ts); what strangers say is
 * shown escaped.
 */
import type { Argv } from 'yargs';
import { whyNoNetwork } from '../admin-api/queue-orders.js';
import { gatewayRoutes } from '../admin-api/routes.js';
import type { TraceAnswer, TraceLine } from '../admin-api/trace.js';
import { TRACE_SECONDS_DEFAULT, TRACE_SECONDS_MAX } from '../admin-api/trace.js';
import type { AdminClient } from './admin-client.js';
import type { CliContext } from './context.js';
import { UsageError } from './context.js';
import { findGroup, reportMissing, withGroupOptions } from './group.js';
import type { GroupArguments } from './group.js';
import { countArgument } from './numbers.js';
import { numberOr } from './options.js';
import { counted, printable } from './tables.js';

const WHO = { client: 'C:', server: 'S:', note: '--' } as const;

interface TraceArguments extends GroupArguments {
  readonly seconds: number;
  readonly json: boolean | undefined;
}

export function traceCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command('trace', 'follow SMTP sessions live', (trace) => {
    trace.command(
      'client <network>', 'sessions of clients from an address or a network',
      (args) => withTraceOptions(args.positional('network', {
        type: 'string', demandOption: true, describe: 'an address, or a network as 192.0.2.0/24',
      })).example('$0 trace client 192.0.2.7', 'until Ctrl-C, or ten minutes are over'),
      async (args) => {
        const { network, seconds } = args;
        const why = whyNoNetwork(network);
        if (why !== '') throw new UsageError(`trace client: ${why}`);
        done(await follow(args, context, (client, signal, tell) =>
          client.follow(gatewayRoutes.traceClients, { query: { network, seconds } }, signal, tell)));
      },
    );
    trace.command(
      'server <host>', 'sessions with a next hop, by its name or address; * stands for anything',
      (args) => withTraceOptions(args.positional('host', {
        type: 'string', demandOption: true, describe: 'a host name, an address, or *.example.com',
      })).example('$0 trace server mx.example.com', 'what is said to it, and what it answers'),
      async (args) => {
        const { host, seconds } = args;
        done(await follow(args, context, (client, signal, tell) =>
          client.follow(gatewayRoutes.traceServers, { query: { host, seconds } }, signal, tell)));
      },
    );
    return trace.demandCommand(1, 'trace what? twinpost trace --help lists the verbs');
  });
}

function withTraceOptions<T>(args: Argv<T>) {
  return withGroupOptions(args as Argv)
    .option('seconds', numberOr(TRACE_SECONDS_DEFAULT, 'for so long'))
    .option('json', { type: 'boolean', describe: 'one JSON object a line' }) as unknown as
      Argv<T & TraceArguments>;
}

type Following = (
  client: AdminClient, signal: AbortSignal, tell: (line: TraceAnswer) => void,
) => Promise<void>;

async function follow(args: TraceArguments, context: CliContext, following: Following): Promise<number> {
  const { seconds } = args;
  countArgument('seconds', seconds, 1, TRACE_SECONDS_MAX);
  const { terminal, stopSignal } = context;
  const json = args.json === true;
  const group = await findGroup(args, context);
  void context.untilStopped();
  const isAlone = group.members.filter(({ kind }) => kind === 'gateway').length === 1;
  const answers = await group.ask('gateway', async (client) => {
    const [self] = (await client.group()).filter((member) => member.self);
    const gateway = self?.id ?? '';
    await following(client, stopSignal, (line) => {
      if ('text' in line) {
        terminal.print(json
          ? printable(JSON.stringify({ gateway, ...line })) : lineText(line, isAlone ? '' : gateway));
      } else if (line.left_out > 0) {
        const text = `${gateway} left out ${counted(line.left_out, 'line')}: too many in a second`;
        if (json) terminal.print(JSON.stringify({ gateway, ...line }));
        else terminal.error(printable(`twinpost: ${text}`));
      }
    });
    return gateway;
  });
  return reportMissing(group.missing('gateway'), answers.length, json, terminal);
}

function lineText({ at, peer, port, who, text }: TraceLine, gateway: string): string {
  const time = new Date(at).toISOString().slice(11, 23);
  const where = port === 0 ? peer : `${peer}:${String(port)}`;
  return printable([time, ...(gateway === '' ? [] : [gateway]), where, WHO[who], text].join(' '));
}
