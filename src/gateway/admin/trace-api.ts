/**
 * The route of the admin HTTP that follows SMTP sessions live: GET /api/v1/trace/clients and
 * /trace/servers (admin-api/trace.ts). Who follows is in the log. A reader that is too slow misses lines,
 * which are counted; nothing waits for him.
 */
import { PassThrough } from 'node:stream';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { gatewayRoutes as routes } from '../../admin-api/routes.js';
import type { TraceAnswer } from '../../admin-api/trace.js';
import { errorText } from '../../base/error-text.js';
import { Wildcards } from '../../base/wildcards.js';
import { readerOf, refuse } from '../../platform/node/admin-guard.js';
import { serve } from '../../platform/node/admin-server.js';
import type { EventLog, LogFields } from '../../platform/ports.js';
import { NetworkList } from '../inbound/policy/network-list.js';
import type { SessionWatch, SessionWatcher } from '../look/session-watch.js';

const SECOND_MS = 1_000;
/** An idle connection is closed after 30 s (platform/node/admin-server.ts). */
const SIGN_OF_LIFE_SECONDS = 10;
const BUFFERED_BYTES_MAX = 256 * 1024;

export interface TracePorts {
  readonly clients: SessionWatch;
  readonly servers: SessionWatch;
}

export function addTrace(api: FastifyInstance, { clients, servers }: TracePorts, log: EventLog): void {
  serve(api, routes.traceClients, (request, reply) => {
    const { network, seconds } = request.query;
    let networks: NetworkList;
    try {
      networks = new NetworkList([network], 'network');
    } catch (error) {
      return refuse(reply, 400, errorText(error));
    }
    const wants = (peer: string): boolean => networks.has(peer);
    return follow(reply, { watch: clients, wants, what: network, seconds, reader: readerOf(request), log });
  });
  serve(api, routes.traceServers, (request, reply) => {
    const { host, seconds } = request.query;
    const patterns = new Wildcards([host]);
    const wants = (peer: string): boolean => namesOf(peer).some((name) => patterns.matches(name));
    return follow(reply, { watch: servers, wants, what: host, seconds, reader: readerOf(request), log });
  });
}

/** Of HOST[ADDRESS]:PORT. */
function namesOf(relay: string): readonly string[] {
  const [, host = relay, address = ''] = /^([^[\]]*)\[([^[\]]*)\]/.exec(relay) ?? [];
  return [host, address, relay];
}

interface Asked {
  readonly watch: SessionWatch;
  readonly wants: (peer: string) => boolean;
  readonly what: string;
  readonly seconds: number;
  readonly reader: LogFields;
  readonly log: EventLog;
}

function follow(reply: FastifyReply, { watch, wants, what, seconds, reader, log }: Asked): FastifyReply {
  const stream = new PassThrough();
  const write = (line: TraceAnswer): boolean => {
    if (stream.writableLength + stream.readableLength > BUFFERED_BYTES_MAX) return false;
    stream.write(`${JSON.stringify(line)}\n`);
    return true;
  };
  const watcher: SessionWatcher = { wants, write };
  if (!watch.add(watcher)) return refuse(reply, 429, 'too many follow sessions here already');
  let second = 0;
  const leave = (): void => {
    clearInterval(timer);
    watch.remove(watcher);
  };
  const timer = setInterval(() => {
    second += 1;
    const leftOut = watch.nextSecond(watcher);
    if (leftOut > 0 || second % SIGN_OF_LIFE_SECONDS === 0) write({ left_out: leftOut });
    if (second < seconds) return;
    leave();
    stream.end();
  }, SECOND_MS);
  log.info('trace', 'an operator follows SMTP sessions', { what, seconds, ...reader });
  stream.once('close', leave);
  // Whatever becomes of the stream, nobody follows without a connection.
  reply.raw.once('close', leave);
  // So that who asks knows that it has begun.
  write({ left_out: 0 });
  return reply.type('application/x-ndjson').send(stream);
}
