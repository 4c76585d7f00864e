/**
 * GET /api/v1/export?partition=GATEWAY/N&after=POSITION: a page of what this store holds of one partition,
 * member of its record or not, with content. Reads only; works with no gateway alive. A page is bounded,
 * so that a partition of a million entries never holds the store's loop (`twinpost store export`
 * asks for one after another).
 */

import type { FastifyInstance } from 'fastify';
import { refuse } from '../../platform/node/admin-server.js';
import { PAGE_NEXT, PAGE_TYPE, encodeEntryPage } from '../../protocol/entry-page.js';
import type { RunningStore } from './running-store.js';

/** About two milliseconds of copying; one entry more than the bytes if it is larger itself. */
const PAGE_ENTRIES = 500;
const PAGE_BYTES = 2 * 1024 * 1024;

export function addExport(app: FastifyInstance, running: RunningStore): void {
  app.get<{
    Querystring: Readonly<Record<string, string | undefined>>,
  }>('/api/v1/export', async (request, reply) => {
    const { partition, after } = request.query;
    const position = Number(after ?? 0);
    if (!Number.isSafeInteger(position) || position < 0) {
      return await refuse(reply, 400, 'after is the position that the page before gave');
    }
    const copy = running.store.partitions.find(partition ?? '');
    if (copy === undefined) {
      return await refuse(reply, 404, 'this store holds no such partition');
    }
    const block = running.store.blocks.peek(copy, position, PAGE_ENTRIES, PAGE_BYTES);
    if (!block.end) reply.header(PAGE_NEXT, String(block.nextPosition));
    return await reply.type(PAGE_TYPE).send(Buffer.from(encodeEntryPage(block.rows, block.bodies).buffer));
  });
}
