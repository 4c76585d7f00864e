/**
 * Content of mail, in the shape that stores have too (protocol/entry-page.ts).
 *
 *   GET /api/v1/queues/NAME/export?class=mail&cursor=…   a page of a queue, in queue order
 *   GET /api/v1/messages/ID/export?part=header           one message, or its header alone
 *
 * Reads only; a page is bounded, `twinpost queue export` asks on. Who reads content is logged.
 */
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { ExportPart } from '../../admin-api/look.js';
import { gatewayRoutes as routes } from '../../admin-api/routes.js';
import { formatMessageId } from '../../base/text-id.js';
import { PAGE_NEXT, PAGE_TYPE, encodeEntryPage } from '../../protocol/entry-page.js';
import { ENTRY_ROW_BYTES } from '../../protocol/entry-rows.js';
import { setTimeout as pause } from 'node:timers/promises';
import { AT_STORES } from './export-view.js';
import type { ExportPage } from './export-view.js';
import { readerOf, refuse } from '../../platform/node/admin-guard.js';
import { serve } from '../../platform/node/admin-server.js';
import type { EventLog, LogFields } from '../../platform/ports.js';
import { messageOf } from './message-id.js';

/** A page; AT_STORES: its first body is not here yet; undefined: there is no such thing. */
type Found = ExportPage | typeof AT_STORES | undefined;

/** Who reads the queues (gateway/admin/export-view.ts). */
export interface ExportSource {
  /** `cursor` '' = the head. */
  exportPage(queue: string, queueClass: string, cursor: string): Found;
  exportMessage(messageId: number, part: ExportPart): Found;
}

const LOOK_MS = 50;
/** A body comes within milliseconds, if there is memory for it. */
const LOOKS_MAX = 60;

export function addExport(api: FastifyInstance, source: ExportSource, log: EventLog): void {
  const answer = async (
    reader: LogFields, reply: FastifyReply, what: string, asked: LogFields, read: () => Found,
  ): Promise<FastifyReply> => {
    const page = await whenHere(read);
    if (page === undefined) return refuse(reply, 404, `there is no ${what}`);
    if (page === AT_STORES) {
      return refuse(
        reply, 503,
        `content of ${what} is still at the stores, for this gateway has no memory for it: `
        + 'try again when mail has been delivered, or read it there with twinpost store export',
      );
    }
    const messages = page.rows.length / ENTRY_ROW_BYTES;
    log.warn('read', 'an operator reads the content of mail', { ...asked, messages, ...reader });
    if (page.nextCursor !== undefined) reply.header(PAGE_NEXT, page.nextCursor);
    return reply.type(PAGE_TYPE).send(Buffer.from(encodeEntryPage(page.rows, page.payload).buffer));
  };
  serve(api, routes.exportQueue, async (request, reply) => {
    const { params: { name }, query: { class: queueClass, cursor } } = request;
    return await answer(
      readerOf(request), reply, `queue '${name}' of class '${queueClass}'`,
      { queue: name, class: queueClass },
      () => source.exportPage(name, queueClass, cursor),
    );
  });
  serve(api, routes.exportMessage, async (request, reply) => {
    const messageId = messageOf(request.params.id, reply);
    if (typeof messageId !== 'number') return await messageId;
    const id = formatMessageId(messageId);
    const { part } = request.query;
    return await answer(
      readerOf(request), reply, `message ${id}`, { queue_id: id, ...(part === 'header' ? { part } : {}) },
      () => source.exportMessage(messageId, part),
    );
  });
}

async function whenHere(read: () => Found): Promise<Found> {
  let found = read();
  for (let looks = 1; found === AT_STORES && looks < LOOKS_MAX; looks += 1) {
    await pause(LOOK_MS);
    found = read();
  }
  return found;
}
