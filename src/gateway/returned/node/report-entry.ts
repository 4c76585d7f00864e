/**
 * The thread that reads reports: takes the beginning of a mail, finds the parts that programs read
 * (RFC 6522), and answers what they say (report-content.ts). Runs as a worker, which report-thread.ts starts,
 * bounds and ends. What can't be parsed to its end counts as far as it was read.
 *
 *   in   octets, which are this thread's own
 *   out  'ready'; then for each mail a ReportContent
 */
import type { Readable } from 'node:stream';
import { parentPort } from 'node:worker_threads';
import { MailParser } from 'mailparser';
import type { AttachmentStream, MessageText } from 'mailparser';
import { invariant } from '../../../base/invariant.js';
import {
  RECIPIENTS_MAX, RETURN_PATHS_MAX, readDeliveryStatus, readFeedback, readReturnPath,
} from '../report-content.js';
import type { ReportContent } from '../report-content.js';

/** A report has three parts, one in a forwarded mail some more. */
const PARTS_MAX = 50;
const HEADER_OCTETS_MAX = 64 * 1024;
/** Of one part that is read. */
const PART_OCTETS_MAX = 64 * 1024;

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

/** Parts by their type; an international report has them in other charsets' names (RFC 6533 5 and 6). */
const STATUS = /^message\/(global-)?delivery-status$/;
const FEEDBACK = 'message/feedback-report';
const ORIGINAL = /^(message\/(rfc822|global)|(text\/rfc822|message\/global)-headers)$/;

const OPTIONS = {
  keepDeliveryStatus: true, ignoreEmbedded: true, maxChildNodes: PARTS_MAX, maxHeadSize: HEADER_OCTETS_MAX,
  skipHtmlToText: true, skipImageLinks: true, skipTextToHtml: true, skipTextLinks: true,
};

function read(octets: Uint8Array): Promise<ReportContent> {
  const content: { recipients: ReportContent['recipients'][number][]; returnPaths: string[] }
    & Pick<Mutable<ReportContent>, 'feedback'> = { recipients: [], returnPaths: [] };
  return new Promise((resolve) => {
    const parser = new MailParser(OPTIONS);
    const end = (): void => { resolve(content); };
    parser.on('data', (part: AttachmentStream | MessageText) => {
      if (part.type !== 'attachment') return;
      const type = part.contentType.toLowerCase();
      readPart(part.content as Readable, (text) => {
        if (STATUS.test(type)) content.recipients.push(...readDeliveryStatus(text));
        else if (type === FEEDBACK) content.feedback ??= readFeedback(text);
        else if (ORIGINAL.test(type)) content.returnPaths.push(readReturnPath(text));
        part.release();
      });
    });
    parser.once('end', end);
    parser.once('error', end);
    parser.end(octets);
  });
}

/** Its beginning; the rest is read and forgotten. */
function readPart(stream: Readable, done: (text: string) => void): void {
  const kept: Buffer[] = [];
  let room = PART_OCTETS_MAX;
  stream.on('data', (octets: Buffer) => {
    if (room === 0) return;
    const piece = octets.subarray(0, room);
    room -= piece.length;
    kept.push(piece);
  });
  stream.once('end', () => { done(Buffer.concat(kept).toString('utf8')); });
}

/** As the gateway takes it (reportShape). */
function bounded({ recipients, feedback, returnPaths }: ReportContent): ReportContent {
  return {
    recipients: recipients.slice(0, RECIPIENTS_MAX), feedback,
    returnPaths: returnPaths.slice(0, RETURN_PATHS_MAX),
  };
}

const port = parentPort;
invariant(port !== null, 'this is a thread');
port.on('message', (octets: Uint8Array) => {
  void read(octets).then((content) => {
    port.postMessage(bounded(content));
  });
});
port.postMessage('ready');
