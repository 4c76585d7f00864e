/**
 * GET /api/v1/queues/NAME/export?class=mail&cursor=…: a page of a queue with content, in queue order, in the
 * shape that stores have too (protocol/entry-page.ts). Reads only; a page is bounded, `twinpost queue export`
 * asks on.
 */
import type { FastifyInstance } from 'fastify';
import { CURSOR_CHARACTERS_MAX } from '../../admin-api/pages.js';
import { PAGE_NEXT, PAGE_TYPE, encodeEntryPage } from '../../protocol/entry-page.js';
import { setTimeout as pause } from 'node:timers/promises';
import { AT_STORES } from '../export-view.js';
import type { ExportPage } from '../export-view.js';
import { refuse } from '../../platform/node/admin-server.js';

/** Who reads the queues (gateway/export-view.ts). */
export interface ExportSource {
  /** Undefined when there is no such queue. `cursor` '' = the head. */
  exportPage(queue: string, queueClass: string, cursor: string): ExportPage | typeof AT_STORES | undefined;
}

const LOOK_MS = 50;
/** A body comes within milliseconds, if there is memory for it. */
const LOOKS_MAX = 60;

export function addExport(api: FastifyInstance, source: ExportSource): void {
  api.get('/queues/:name/export', async (request, reply) => {
    const { name } = request.params as { name: string };
    const { class: queueClass = 'mail', cursor = '' } = request.query as Readonly<Record<string, unknown>>;
    const isPlain = typeof queueClass === 'string' && typeof cursor === 'string';
    if (!isPlain || cursor.length > CURSOR_CHARACTERS_MAX) {
      return await refuse(
        reply, 400, 'class and cursor are given once, the cursor as the page before gave it',
      );
    }
    let page = source.exportPage(name, queueClass, cursor);
    for (let looks = 1; page === AT_STORES && looks < LOOKS_MAX; looks += 1) {
      await pause(LOOK_MS);
      page = source.exportPage(name, queueClass, cursor);
    }
    if (page === AT_STORES) {
      return await refuse(
        reply, 503,
        `the next message of '${name}' is still at the stores, for this gateway has no memory for it: `
        + 'try again when mail has been delivered, or read it there with twinpost store export',
      );
    }
    if (page === undefined) {
      return await refuse(reply, 404, `there is no queue '${name}' of class '${queueClass}'`);
    }
    if (page.nextCursor !== undefined) reply.header(PAGE_NEXT, page.nextCursor);
    return await reply.type(PAGE_TYPE).send(Buffer.from(encodeEntryPage(page.rows, page.payload).buffer));
  });
}
