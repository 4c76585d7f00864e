/**
 * SMTP sessions as a gateway tells of them live, a JSON object a line: gateway/admin/trace-api.ts writes
 * them, cli reads them.
 *
 *   GET /api/v1/trace/clients?network=192.0.2.0/24&seconds=600
 *   GET /api/v1/trace/servers?host=*.example.com&seconds=600
 */
import { z } from 'zod';
import { name, text } from './pages.js';

/** Longer is asked for anew. */
export const TRACE_SECONDS_MAX = 3_600;
export const TRACE_SECONDS_DEFAULT = 600;

const traceLine = z.object({
  /** Milliseconds since 1970. */
  at: z.int(),
  /** Address of a client; HOST[ADDRESS]:PORT of a next hop. */
  peer: name,
  /** Of a client; else 0. */
  port: z.int(),
  who: z.enum(['client', 'server', 'note']),
  text,
});
export type TraceLine = Readonly<z.output<typeof traceLine>>;

/** So many lines were left out: there were more than a watcher may have. 0: nothing was said for a while. */
const traceLeftOut = z.object({ left_out: z.int() });
export type TraceLeftOut = Readonly<z.output<typeof traceLeftOut>>;

export const traceAnswer = z.union([traceLine, traceLeftOut]);
export type TraceAnswer = TraceLine | TraceLeftOut;
