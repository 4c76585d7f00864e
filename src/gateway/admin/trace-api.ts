/**
 * The route of the admin HTTP that follows SMTP sessions live: GET /api/v1/trace/clients and
 * /trace/servers (admin-api/trace.ts). Who follows is in the log. A reader that is too slow misses lines,
 * which are counted; nothing waits for him.
 */
import { PassThrough } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { TRACE_SECONDS_DEFAULT, TRACE_SECONDS_MAX } from '../../admin-api/trace.js';
import type { TraceAnswer } from '../../admin-api/trace.js';
import { errorText } from '../../base/error-text.js';
import { Wildcards } from '../../base/wildcards.js';
import { readerOf, refuse } from '../../platform/node/admin-server.js';
import type { EventLog } from '../../platform/ports.js';
import { NetworkList } from '../inbound/policy/network-list.js';
import type { SessionWatch, SessionWatcher } from '../look/session-watch.js';

const SECOND_MS = 1_000;
/** An idle connection is closed after 30 s (platform/node/admin-server.ts). */
const SIGN_OF_LIFE_SECONDS = 10;
const BUFFERED_BYTES_MAX = 256 * 1024;
const PATTERN_CHARACTERS_MAX = 255;

export interface TracePorts {
  readonly clients: SessionWatch;
  readonly servers: SessionWatch;
}

export function addTrace(api: FastifyInstance, { clients, servers }: TracePorts, log: EventLog): void {
  api.get('/trace/clients', (request, reply) => {
    const network = textOf(request, 'network');
    let networks: NetworkList;
    try {
      networks = new NetworkList([network], 'network');
    } catch (error) {
      return refuse(reply, 400, errorText(error));
    }
    const wants = (peer: string): boolean => networks.has(peer);
    return follow(request, reply, { watch: clients, wants, what: network, log });
  });
  api.get('/trace/servers', (request, reply) => {
    const host = textOf(request, 'host');
    if (host === '' || host.length > PATTERN_CHARACTERS_MAX) return refuse(reply, 400, 'host is a name or *');
    const patterns = new Wildcards([host]);
    const wants = (peer: string): boolean => namesOf(peer).some((name) => patterns.matches(name));
    return follow(request, reply, { watch: servers, wants, what: host, log });
  });
}

/** Of HOST[ADDRESS]:PORT. */
function namesOf(relay: string): readonly string[] {
  const [, host = relay, address = ''] = /^([^[\]]*)\[([^[\]]*)\]/.exec(relay) ?? [];
  return [host, address, relay];
}

function textOf(request: FastifyRequest, name: string): string {
  const value = (request.query as Readonly<Record<string, unknown>>)[name];
  return typeof value === 'string' ? value : '';
}

interface Asked {
  readonly watch: SessionWatch;
  readonly wants: (peer: string) => boolean;
  readonly what: string;
  readonly log: EventLog;
}

function follow(
  request: FastifyRequest, reply: FastifyReply, { watch, wants, what, log }: Asked,
): FastifyReply {
  const asked = textOf(request, 'seconds');
  const seconds = asked === '' ? TRACE_SECONDS_DEFAULT : Number(asked);
  if (!Number.isInteger(seconds) || seconds < 1 || seconds > TRACE_SECONDS_MAX) {
    return refuse(reply, 400, `seconds is a whole number from 1 to ${String(TRACE_SECONDS_MAX)}`);
  }
  const stream = new PassThrough();
  const write = (line: TraceAnswer): boolean => {
    if (stream.writableLength + stream.readableLength > BUFFERED_BYTES_MAX) return false;
    stream.write(`${JSON.stringify(line)}\n`);
    return true;
  };
  const watcher: SessionWatcher = { wants, write };
  if (!watch.add(watcher)) return refuse(reply, 429, 'too many follow sessions here already');
  let second = 0;
  const timer = setInterval(() => {
    second += 1;
    const leftOut = watch.nextSecond(watcher);
    if (leftOut > 0 || second % SIGN_OF_LIFE_SECONDS === 0) write({ left_out: leftOut });
    if (second >= seconds) stream.end();
  }, SECOND_MS);
  log.info('trace', 'an operator follows SMTP sessions', { what, seconds, ...readerOf(request) });
  stream.once('close', () => {
    clearInterval(timer);
    watch.remove(watcher);
  });
  // So that who asks knows that it has begun.
  write({ left_out: 0 });
  return reply.type('application/x-ndjson').send(stream);
}
