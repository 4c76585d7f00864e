/** Asks an admin port for pages of entries (protocol/entry-page.ts), one after another, into a folder. */
import http from 'node:http';
import https from 'node:https';
import type { Packer } from '../../platform/ports.js';
import { PAGE_NEXT, decodeEntryPage } from '../../protocol/entry-page.js';
import { CliError } from '../context.js';
import { exportRows } from './entries.js';
import type { ExportedQueue } from './exported-message.js';
import type { ExportFolder } from './folder.js';

const TIMEOUT_MS = 30_000;
/** A page holds 2 MiB, or one message of the largest size. */
const PAGE_BYTES_MAX = 128 * 1024 * 1024;

export interface PageSource {
  /** Without a slash at its end. */
  readonly url: string;
  readonly token: string | undefined;
  /** Path of the page behind `next`; '' is the first. */
  path(next: string): string;
}

/** Answers after the last page. A queue that has gone meanwhile ends quietly. */
export async function exportPages(packer: Packer, source: PageSource, queue: ExportedQueue, folder: ExportFolder, onPage: () => void): Promise<void> {
  let next: string | undefined = '';
  while (next !== undefined) {
    const answer: Answer = await get(source.url + source.path(next), source.token);
    if (answer.code === 404) return;
    if (answer.code === 401) throw new CliError(`${source.url} wants a bearer token: --token, or TWINPOST_TOKEN in the environment`);
    const page = answer.code === 200 ? decodeEntryPage(answer.body) : undefined;
    if (page === undefined) throw new CliError(`${source.url} did not answer with messages (status ${String(answer.code)}); is it of another release?`);
    exportRows(packer, folder, queue, page.rows, page.payload, () => undefined);
    onPage();
    next = answer.next;
  }
}

interface Answer {
  readonly code: number;
  readonly next: string | undefined;
  readonly body: Uint8Array;
}

function get(url: string, token: string | undefined): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException): void => { reject(new CliError(`no answer from ${url.split('?', 1)[0] ?? url}: ${error.code ?? error.message}`)); };
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const request = (url.startsWith('https:') ? https : http).get(url, { headers, agent: false, signal: AbortSignal.timeout(TIMEOUT_MS) }, (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > PAGE_BYTES_MAX) request.destroy(new Error('the answer is too long'));
        else chunks.push(chunk);
      });
      response.once('error', fail);
      response.once('end', () => {
        const next = response.headers[PAGE_NEXT];
        resolve({ code: response.statusCode ?? 0, next: typeof next === 'string' ? next : undefined, body: Buffer.concat(chunks) });
      });
    });
    request.once('error', fail);
  });
}
