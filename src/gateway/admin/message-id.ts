/** The message that the address of a request to the admin HTTP names, or the refusal of what is none. */
import type { FastifyReply } from 'fastify';
import { parseMessageId } from '../../base/text-id.js';
import { refuse } from '../../platform/node/admin-guard.js';

const SHOWN_CHARACTERS_MAX = 40;

export function messageOf(id: string, reply: FastifyReply): number | FastifyReply {
  return parseMessageId(id) ?? refuse(reply, 400, `'${id.slice(0, SHOWN_CHARACTERS_MAX)}' is no queue id`);
}
