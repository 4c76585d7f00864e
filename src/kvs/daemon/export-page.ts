/**
 * GET /api/v1/export?partition=GATEWAY/N&after=POSITION: a page of what this store holds of one partition,
 * member of its record or not, with content. Reads only; works with no gateway alive. A page is bounded,
 * so that a partition of a million entries never holds the store's loop (`twinpost store export`
 * asks for one after another). Who reads content is logged.
 */

import type { FastifyInstance } from 'fastify';
import { storeRoutes as routes } from '../../admin-api/routes.js';
import { readerOf, refuse } from '../../platform/node/admin-guard.js';
import { serve } from '../../platform/node/admin-server.js';
import type { EventLog } from '../../platform/ports.js';
import { PAGE_NEXT, PAGE_TYPE, encodeEntryPage } from '../../protocol/entry-page.js';
import { ENTRY_ROW_BYTES } from '../../protocol/entry-rows.js';
import type { RunningStore } from './running-store.js';

/** About two milliseconds of copying; one entry more than the bytes if it is larger itself. */
const PAGE_ENTRIES = 500;
const PAGE_BYTES = 2 * 1024 * 1024;

export function addExport(app: FastifyInstance, running: RunningStore, log: EventLog): void {
  serve(app, routes.exportPartition, async (request, reply) => {
    const { partition, after } = request.query;
    const copy = running.store.partitions.find(partition);
    if (copy === undefined) {
      return await refuse(reply, 404, 'this store holds no such partition');
    }
    const block = running.store.blocks.peek(copy, after, PAGE_ENTRIES, PAGE_BYTES);
    const messages = block.rows.length / ENTRY_ROW_BYTES;
    log.warn('read', 'an operator reads the content of mail', {
      partition: copy.partition, messages, ...readerOf(request),
    });
    if (!block.end) reply.header(PAGE_NEXT, String(block.nextPosition));
    return await reply.type(PAGE_TYPE).send(Buffer.from(encodeEntryPage(block.rows, block.bodies).buffer));
  });
}
